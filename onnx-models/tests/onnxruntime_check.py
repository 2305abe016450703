#!/usr/bin/env python3
"""Runs exported models in onnxruntime and compares with what Evenhand computes.

    python3 -m venv venv && venv/bin/pip install onnx onnxruntime numpy
    cargo run -p evenhand-models --example export_models -- FOLDER
    venv/bin/python onnx-models/tests/onnxruntime_check.py FOLDER
"""

import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime

TOLERANCE = 1e-5
SHIPPED = 9


def check(path):
    record = json.loads(path.with_suffix(".json").read_text())
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    missing = record["metadata"].items() - metadata.items()
    if missing:
        return f"metadata missing: {dict(missing)}"

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    first, *others = session.get_inputs()
    feeds = {first.name: np.array(record["inputs"], np.float32).reshape(record["shape"])}
    for other in others:
        # Initial states: zeros, with the batch of the first input.
        shape = [size if isinstance(size, int) else record["shape"][0] for size in other.shape]
        feeds[other.name] = np.zeros(shape, np.float32)
    output = session.run(None, feeds)[0].flatten()
    expected = np.array(record["output"], np.float32)
    if output.shape != expected.shape:
        return f"{output.size} values, expected {expected.size}"
    error = float(np.abs(output - expected).max())
    limit = TOLERANCE * max(1.0, float(np.abs(expected).max()))
    return None if error <= limit else f"off by {error}, allowed {limit}"


def main():
    paths = sorted(pathlib.Path(sys.argv[1]).glob("*.onnx"))
    assert len(paths) > SHIPPED, f"only {len(paths)} models in {sys.argv[1]}"
    failures = {path.name: problem for path in paths if (problem := check(path))}
    for name, problem in failures.items():
        print(f"{name}: {problem}", file=sys.stderr)
    print(f"{len(paths) - len(failures)} of {len(paths)} exported models compute the same in onnxruntime "
          f"{onnxruntime.__version__}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
