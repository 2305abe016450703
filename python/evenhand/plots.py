"""Plots, by matplotlib."""

import matplotlib.pyplot as plt


def plot_curve(curves, series, ax=None):
    """Mean over trials of a series by round, a line a strategy, with its standard error; controls are left out."""
    ax = ax or plt.subplots()[1]
    for variant, rows in curves[~curves["control"].astype(bool)].groupby("variant"):
        by_round = rows.groupby("round")[series]
        mean, error = by_round.mean(), by_round.sem().fillna(0.0)
        ax.plot(mean.index, mean, label=variant)
        ax.fill_between(mean.index, mean - error, mean + error, alpha=0.2)
    ax.set_xlabel("round")
    ax.set_ylabel(series)
    ax.legend()
    return ax


def plot_standings(nodes, ax=None):
    """Standing against ζ, a dot a node: fair standings fall from left to right."""
    ax = ax or plt.subplots()[1]
    for variant, rows in nodes[~nodes["control"].astype(bool)].groupby("variant"):
        ax.scatter(rows["zeta"], rows["standing"], s=14, label=variant)
    ax.set_xlabel("data quality ζ (0 is clean)")
    ax.set_ylabel("standing ψ")
    ax.legend()
    return ax
