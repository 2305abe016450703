"""Results of experiments as pandas tables."""

import json
import os
import pathlib

import pandas as pd

KEYS = ["dataset", "corruption", "variant", "control", "seed"]


def _files(folder):
    """The trials in a folder of results: path and content."""
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {os.fspath(folder)}; run evenhand.experiment({os.fspath(folder)!r}) first")
    for path in sorted(folder.rglob("seed-*.json")):
        yield path, json.loads(path.read_text())


def _keys(path, content):
    setup = content["setup"]
    # A control has the same settings but for its data, which are alike.
    control = path.parent.name.split(",")[0] == "level-0"
    return {**setup, "control": control, "path": str(path)}


def trials(folder):
    """A row a trial: its settings, its figures (nested ones as `online_loss.mean`), seconds and how it ended."""
    rows = []
    for path, content in _files(folder):
        figures = {name: value for name, value in content["figures"].items() if name != "nodes"}
        rows.append({**_keys(path, content), **figures, "seconds": content["seconds"]})
    return pd.json_normalize(rows) if rows else pd.DataFrame(columns=KEYS)


def nodes(folder):
    """A row a node of a trial: ζ, standing, odds, draws, waits, loss."""
    rows = [
        {**{key: keys[key] for key in KEYS}, **node}
        for path, content in _files(folder)
        for keys in [_keys(path, content)]
        for node in content["figures"]["nodes"]
    ]
    return pd.DataFrame(rows)


def curves(folder):
    """A row a round of a trial: every series of its curve that has a value a round."""
    tables = []
    for path, content in _files(folder):
        series = {name: values for name, values in content["curve"].items() if isinstance(values, list)}
        rounds = max(map(len, series.values()), default=0)
        table = pd.DataFrame({name: values for name, values in series.items() if len(values) == rounds})
        keys = _keys(path, content)
        for key in reversed(KEYS):
            table.insert(0, key, keys[key])
        table.insert(len(KEYS), "round", range(1, rounds + 1))
        tables.append(table)
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=[*KEYS, "round"])


def summary(trials, figure):
    """Mean, standard error and number of a figure by data set, corruption and strategy, and its control at level 0: a
    figure that its control has too is no evidence."""
    by = ["dataset", "corruption", "variant"]
    groups = trials[~trials["control"].astype(bool)].groupby(by)[figure]
    table = pd.DataFrame({"mean": groups.mean(), "error": groups.sem(), "trials": groups.count()})
    control = trials[trials["control"].astype(bool)].groupby(by)[figure].mean()
    return table.join(control.rename("level 0"))
