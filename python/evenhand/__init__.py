"""Evenhand's experiments from Python, by its program `evenhand-fleet`."""

from .program import FleetError, calc, demo, experiment, program
from .results import curves, nodes, summary, trials

__all__ = [
    "FleetError", "calc", "curves", "demo", "experiment", "nodes", "plot_curve", "plot_standings", "program",
    "summary", "trials",
]


def __getattr__(name):
    # matplotlib is loaded by those alone who plot.
    if name in ("plot_curve", "plot_standings"):
        from . import plots

        return getattr(plots, name)
    raise AttributeError(f"module 'evenhand' has no attribute {name!r}")
