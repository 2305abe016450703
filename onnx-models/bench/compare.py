#!/usr/bin/env python3
"""Times one gradient step of the shipped models beside PyTorch, on one core, in the same run; prints Markdown tables.

The second table is about predictions: with weights that can be swapped, and with weights folded into tract's plan.

    python3 -m venv venv && venv/bin/pip install torch numpy
    cargo build --release --workspace --example gradient_time
    taskset -c 0 venv/bin/python onnx-models/bench/compare.py target/release/examples/gradient_time

Both sides do the same work: copy the weights in, forward, backward, copy the gradient out. Times are processor time, not
the clock's; rounds alternate between the two sides, and the best mean of several stretches is reported of each.
"""

import json
import subprocess
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


class Rnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(5, 40, batch_first=True)
        self.fc = nn.Linear(40, 1)

    def forward(self, x):
        return self.fc(self.rnn(x)[1][0])


def mnist_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 64, 3), nn.Tanh(), nn.MaxPool2d(2), nn.Conv2d(64, 16, 7), nn.Tanh(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(256, 200), nn.Tanh(), nn.Linear(200, 10), nn.LogSoftmax(1),
    )


def lenet(channels, flat, classes):
    return nn.Sequential(
        nn.Conv2d(3, channels[0], 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(*channels, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(flat, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, classes),
        nn.LogSoftmax(1),
    )


def mlp(*sizes, log_softmax):
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1], *([nn.LogSoftmax(1)] if log_softmax else []))


def dqn_nature():
    return nn.Sequential(
        nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 6),
    )


def dqn_grid():
    return nn.Sequential(
        nn.Conv2d(4, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 6)
    )


MODELS = {
    "electricity-rnn": Rnn,
    "electricity-mlp": lambda: mlp(520, 100, 50, 1, log_softmax=False),
    "hft-mlp": lambda: mlp(144, 128, 64, 3, log_softmax=True),
    "mnist-cnn": mnist_cnn,
    "cifar-cnn": lambda: lenet((6, 16), 400, 10),
    "path-cnn": lambda: lenet((16, 32), 512, 9),
    "dqn-nature": dqn_nature,
    "dqn-grid": dqn_grid,
}
ROUNDS = 5


def torch_gradient_us(name, shape):
    torch.manual_seed(0)
    model = MODELS[name]()
    parameters = list(model.parameters())
    x = torch.rand(shape) * 2 - 1
    output = model(x)
    if isinstance(model, nn.Sequential) and isinstance(model[-1], nn.LogSoftmax):
        targets, loss = torch.arange(shape[0]) % output.shape[1], F.nll_loss
    else:
        targets, loss = torch.full_like(output, 0.1), F.mse_loss
    weights = torch.cat([p.detach().flatten() for p in parameters])

    def step():
        torch.nn.utils.vector_to_parameters(weights, parameters)
        for p in parameters:
            p.grad = None
        loss(model(x), targets).backward()
        return torch.cat([p.grad.flatten() for p in parameters])

    begin = time.perf_counter()
    step()
    rounds = int(min(max(0.15 / (time.perf_counter() - begin), 3), 2000))
    best = float("inf")
    for _ in range(6):
        begin = time.process_time()
        for _ in range(rounds):
            step()
        best = min(best, (time.process_time() - begin) / rounds * 1e6)
    return best


def main():
    torch.set_num_threads(1)
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    ours, theirs = {}, {}
    for _ in range(ROUNDS):
        lines = subprocess.run([sys.argv[1], wanted], check=True, capture_output=True, text=True).stdout.splitlines()
        for line in map(json.loads, lines):
            key = (line["model"], *line["shape"])
            if key not in ours or line["gradient_us"] < ours[key]["gradient_us"]:
                ours[key] = line
            theirs[key] = min(theirs.get(key, float("inf")), torch_gradient_us(line["model"], line["shape"]))
    print("| model | input | Evenhand µs | PyTorch µs | ratio |")
    print("|---|---|--:|--:|--:|")
    for key, line in ours.items():
        us, torch_us = line["gradient_us"], theirs[key]
        shape = "×".join(map(str, line["shape"]))
        print(f"| {line['model']} | {shape} | {us:.0f} | {torch_us:.0f} | {us / torch_us:.2f} |")
    print()
    print("| model, one sample | predict µs | swap and predict µs | folded: predict µs | folded: swap and predict µs |")
    print("|---|--:|--:|--:|--:|")
    for line in ours.values():
        shape = "×".join(map(str, [1, *line["shape"][1:]]))
        columns = ["predict_us", "swap_and_predict_us", "folded_predict_us", "folded_swap_and_predict_us"]
        print(f"| {line['model']} {shape} | " + " | ".join(f"{line[c]:.0f}" for c in columns) + " |")


if __name__ == "__main__":
    main()
