"""The program `evenhand-fleet`: where it is, and its commands as functions."""

import json
import os
import shutil
import subprocess

VARIABLE = "EVENHAND_FLEET"
_chosen = None


class FleetError(RuntimeError):
    """The program has ended with an error; `code` is its exit code, the message its own sentence."""

    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code = code


def program(path=None):
    """Path of the program: as chosen here, in EVENHAND_FLEET, or on the PATH."""
    global _chosen
    if path is not None:
        _chosen = os.fspath(path)
    found = _chosen or os.environ.get(VARIABLE) or shutil.which("evenhand-fleet")
    if not found or not os.path.exists(found):
        raise FleetError(
            64, f"there is no evenhand-fleet{f' at {found}' if found else ''}; build it with cargo build --release -p "
            f"evenhand-fleet, and name it by evenhand.program(PATH) or {VARIABLE}")
    return found


def _flags(settings):
    """Flags of the command line: `learning_rate=0.1` is --learning-rate 0.1, a list has commas, True is the flag alone."""
    for name, value in settings.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            yield flag
        elif isinstance(value, (list, tuple)):
            yield from (flag, ",".join(map(str, value)))
        elif value is not None and value is not False:
            yield from (flag, str(value))


def _run(arguments, stdin=None, check=True):
    run = subprocess.run([program(), *arguments], input=stdin, capture_output=True, text=True)
    if check and run.returncode != 0:
        sentence = run.stderr.strip().removeprefix("evenhand-fleet: ") if hasattr(str, "removeprefix") else run.stderr.strip()
        raise FleetError(run.returncode, sentence)
    return run.stdout


def calc(what, **question):
    """The answer of a calculator: shapley, stop, incentive or gradient. Fields are those of docs/fairness.md."""
    return json.loads(_run(["calc", what], stdin=json.dumps(question)))


def demo(**settings):
    """The figures of a simulated fleet: flags of `evenhand-fleet demo` as keywords."""
    return json.loads(_run(["demo", "--json", "--no-progress", *_flags(settings)]))


def experiment(out, report=None, **settings):
    """Runs trials into the folder `out`, flags of `evenhand-fleet experiment` as keywords; those that are there are not
    run again. Returns the summary that the program prints."""
    report = os.path.join(os.fspath(out), "report.html") if report is None else os.fspath(report)
    os.makedirs(out, exist_ok=True)
    fixed = ["--out", os.fspath(out), "--report", report, "--json", "--no-progress"]
    return json.loads(_run(["experiment", *fixed, *_flags(settings)]))
