"""The package over a built evenhand-fleet (EVENHAND_FLEET): the notebook runs, errors are the program's sentences."""

import pathlib
import sys

import nbformat
from nbclient import NotebookClient

import evenhand

FOLDER = pathlib.Path(__file__).resolve().parent.parent


def raised(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was expected")


def main():
    error = raised(evenhand.FleetError, lambda: evenhand.calc("incentive", standings=[0.1]))
    assert error.code == 65 and "missing field `k`" in str(error), error
    error = raised(evenhand.FleetError, lambda: evenhand.experiment("/tmp", dataset="none"))
    assert error.code == 64 and "none" in str(error), error
    raised(FileNotFoundError, lambda: evenhand.trials("/no/such/folder"))
    notebook = nbformat.read(FOLDER / "example.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "the notebook is stored without outputs"
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    pictures = sum("image/png" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", []))
    assert pictures == 2, pictures
    print(f"python: {len(notebook.cells)} cells, {pictures} pictures")


if __name__ == "__main__":
    sys.exit(main())
