#!/usr/bin/env python3
"""Writes epsilon.csv beside this file: ε of composed Gaussian mechanisms, by dp-accounting.

    python3 -m venv venv && venv/bin/pip install dp-accounting==0.6.0
    venv/bin/python node-runtime/tests/privacy/generate.py [FILE]
"""

import pathlib
import sys

from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant

FILE = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "epsilon.csv")
# Orders finer than the accountant's own, so that its choice among them does not show.
ORDERS = [1 + 10 ** (k / 200) for k in range(-390, 1401)]

lines = ["# noise in units of the sensitivity, messages, delta, epsilon: by generate.py"]
for noise in [0.05, 0.5, 1.0, 2.0, 4.0, 10.0, 40.0]:
    for messages in [1, 7, 59, 730, 20_000]:
        for delta in [1e-3, 1e-5, 1e-8]:
            accountant = RdpAccountant(orders=ORDERS)
            accountant.compose(dp_event.GaussianDpEvent(noise), messages)
            epsilon = accountant.get_epsilon(delta)
            if epsilon > 1e-3:
                lines.append(f"{noise},{messages},{delta},{epsilon:.9g}")
FILE.write_text("\n".join(lines) + "\n")
