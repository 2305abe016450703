#!/usr/bin/env python3
"""Writes the shipped models into onnx-models/models/, or another folder, the same bytes every time.

    python3 -m venv venv && venv/bin/pip install onnx numpy
    venv/bin/python onnx-models/generate.py [FOLDER]

Initial weights are PyTorch's defaults, uniform on ±1/√fan_in (±1/√hidden in the recurrent layer), drawn from numpy's
PCG64 with one fixed seed for each model. `dqn-nature` and the `dqn-minatar` models carry no weights: their parameters
are graph inputs without a default, and the loader draws them from `evenhand.seed` (see README.md, "Architectures
without weights").
"""

import pathlib
import sys
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "models")
OPSET, IR_VERSION = 17, 8


class Builder:
    """Collects the nodes and the initial weights of one model."""

    def __init__(self, name, seeded=False):
        self.name, self.seeded = name, seeded
        self.random = np.random.default_rng(zlib.crc32(name.encode()))
        self.nodes, self.initializers, self.parameter_inputs = [], [], []
        self.metadata = {}

    def node(self, operator, inputs, output, **attributes):
        outputs = [output] if isinstance(output, str) else output
        name = next(o for o in outputs if o)
        self.nodes.append(helper.make_node(operator, inputs, outputs, name=name, **attributes))
        return name

    def weight(self, name, shape, fan_in):
        if self.seeded:
            self.parameter_inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
            return name
        bound = 1.0 / np.sqrt(fan_in)
        values = self.random.uniform(-bound, bound, shape).astype(np.float32)
        self.initializers.append(numpy_helper.from_array(values, name))
        return name

    def zeros(self, name, shape):
        self.initializers.append(numpy_helper.from_array(np.zeros(shape, np.float32), name))
        return name

    def integers(self, name, values):
        self.initializers.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def linear(self, x, layer, inputs, outputs, output=None):
        weight = self.weight(f"{layer}.weight", [outputs, inputs], inputs)
        bias = self.weight(f"{layer}.bias", [outputs], inputs)
        return self.node("Gemm", [x, weight, bias], output or layer, transB=1)

    def conv(self, x, layer, inputs, outputs, kernel, stride=1):
        fan_in = inputs * kernel * kernel
        weight = self.weight(f"{layer}.weight", [outputs, inputs, kernel, kernel], fan_in)
        bias = self.weight(f"{layer}.bias", [outputs], fan_in)
        return self.node(
            "Conv", [x, weight, bias], layer, kernel_shape=[kernel, kernel], strides=[stride, stride]
        )

    def pool(self, x, output):
        return self.node("MaxPool", [x], output, kernel_shape=[2, 2], strides=[2, 2])

    def save(self, inputs, outputs, task, loss):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, inputs)
        y = helper.make_tensor_value_info(self.nodes[-1].output[0], TensorProto.FLOAT, outputs)
        graph = helper.make_graph(self.nodes, self.name, [x] + self.parameter_inputs, [y], self.initializers)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="evenhand",
        )
        metadata = {"evenhand.task": task, "evenhand.loss": loss, **self.metadata}
        if self.seeded:
            metadata["evenhand.seed"] = str(zlib.crc32(self.name.encode()))
        helper.set_model_props(model, metadata)
        onnx.checker.check_model(model, full_check=True)
        (FOLDER / f"{self.name}.onnx").write_bytes(model.SerializeToString(deterministic=True))


def electricity_rnn(hidden=40, features=5):
    b = Builder("electricity-rnn")
    b.node("Transpose", ["x"], "steps", perm=[1, 0, 2])
    weights = [
        b.weight("rnn.W", [1, hidden, features], hidden),
        b.weight("rnn.R", [1, hidden, hidden], hidden),
        b.weight("rnn.B", [1, 2 * hidden], hidden),
    ]
    b.node("RNN", ["steps", *weights], ["", "last"], hidden_size=hidden)
    b.node("Squeeze", ["last", b.integers("direction", [0])], "state")
    b.linear("state", "fc", hidden, 1, output="y")
    b.save(["batch", "lags", features], ["batch", 1], "next normalised load from lagged loads and the calendar", "mse")


def mlp(name, sizes, task, loss):
    b = Builder(name)
    x = "x"
    for layer, (inputs, outputs) in enumerate(zip(sizes, sizes[1:]), 1):
        last = layer == len(sizes) - 1
        x = b.linear(x, f"fc{layer}", inputs, outputs, output="y" if last and loss == "mse" else None)
        if not last:
            x = b.node("Relu", [x], f"relu{layer}")
    if loss == "nll":
        b.node("LogSoftmax", [x], "y", axis=1)
    b.save(["batch", sizes[0]], ["batch", sizes[-1]], task, loss)


def load_quantiles(features=41, hidden=32, quantiles=(0.1, 0.5, 0.9)):
    """Corrections of a naive profile's quantiles. Both outputs that are added are zero at first: round 0 is the profile."""
    b = Builder("load-quantiles")
    x = b.node("Relu", [b.linear("x", "fc1", features, hidden)], "relu1")
    x = b.node("Relu", [b.linear(x, "fc2", hidden, hidden)], "relu2")
    last = [b.zeros("fc3.weight", [len(quantiles), hidden]), b.zeros("fc3.bias", [len(quantiles)])]
    shared = b.node("Gemm", [x, *last], "shared", transB=1)
    personal = b.node("Gemm", ["x", b.zeros("personal.weight", [len(quantiles), features])], "personal", transB=1)
    b.node("Add", [shared, personal], "y")
    b.metadata = {
        "evenhand.quantiles": ",".join(map(str, quantiles)),
        "evenhand.personal": "personal.weight",
    }
    task = "corrections of the 10, 50 and 90 % quantiles of a naive load profile, in units of the home's mean load"
    b.save(["batch", features], ["batch", len(quantiles)], task, "pinball")


def mnist_cnn():
    b = Builder("mnist-cnn")
    x = b.pool(b.node("Tanh", [b.conv("x", "conv1", 1, 64, 3)], "tanh1"), "pool1")
    x = b.pool(b.node("Tanh", [b.conv(x, "conv2", 64, 16, 7)], "tanh2"), "pool2")
    x = b.node("Flatten", [x], "flat", axis=1)
    x = b.node("Tanh", [b.linear(x, "fc1", 256, 200)], "tanh3")
    b.node("LogSoftmax", [b.linear(x, "fc2", 200, 10)], "y", axis=1)
    b.save(["batch", 1, 32, 32], ["batch", 10], "handwritten digits, padded to 32×32", "nll")


def lenet(name, channels, size, classes, flat, task):
    b = Builder(name)
    x = b.pool(b.node("Relu", [b.conv("x", "conv1", 3, channels[0], 5)], "relu1"), "pool1")
    x = b.pool(b.node("Relu", [b.conv(x, "conv2", channels[0], channels[1], 5)], "relu2"), "pool2")
    x = b.node("Flatten", [x], "flat", axis=1)
    x = b.node("Relu", [b.linear(x, "fc1", flat, 120)], "relu3")
    x = b.node("Relu", [b.linear(x, "fc2", 120, 84)], "relu4")
    b.node("LogSoftmax", [b.linear(x, "fc3", 84, classes)], "y", axis=1)
    b.save(["batch", 3, size, size], ["batch", classes], task, "nll")


def dqn_nature(actions=6):
    b = Builder("dqn-nature", seeded=True)
    x = b.node("Relu", [b.conv("x", "conv1", 4, 32, 8, 4)], "relu1")
    x = b.node("Relu", [b.conv(x, "conv2", 32, 64, 4, 2)], "relu2")
    x = b.node("Relu", [b.conv(x, "conv3", 64, 64, 3, 1)], "relu3")
    x = b.node("Flatten", [x], "flat", axis=1)
    x = b.node("Relu", [b.linear(x, "fc1", 3136, 512)], "relu4")
    b.linear(x, "fc2", 512, actions, output="q")
    b.save(["batch", 4, 84, 84], ["batch", actions], "action values from four 84×84 frames", "huber")


def dqn_grid(channels=4, actions=6):
    b = Builder("dqn-grid")
    x = b.node("Relu", [b.conv("x", "conv1", channels, 16, 3)], "relu1")
    x = b.node("Flatten", [x], "flat", axis=1)
    x = b.node("Relu", [b.linear(x, "fc1", 1024, 64)], "relu2")
    b.linear(x, "fc2", 64, actions, output="q")
    b.save(["batch", channels, 10, 10], ["batch", actions], "action values from a 10×10 grid", "huber")


def dqn_minatar(channels, actions=6):
    """The network of Young and Tian 2019 for a game with so many channels."""
    b = Builder(f"dqn-minatar-{channels}", seeded=True)
    x = b.node("Relu", [b.conv("x", "conv1", channels, 16, 3)], "relu1")
    x = b.node("Flatten", [x], "flat", axis=1)
    x = b.node("Relu", [b.linear(x, "fc1", 1024, 128)], "relu2")
    b.linear(x, "fc2", 128, actions, output="q")
    b.save(["batch", channels, 10, 10], ["batch", actions], "action values of a MinAtar game", "huber")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    electricity_rnn()
    load_quantiles()
    mlp("electricity-mlp", [520, 100, 50, 1], "next load from 13 × 40 past loads", "mse")
    mlp("hft-mlp", [144, 128, 64, 3], "direction of the mid-price from an order book", "nll")
    mnist_cnn()
    lenet("cifar-cnn", (6, 16), 32, 10, 400, "small colour photographs")
    lenet("path-cnn", (16, 32), 28, 9, 512, "colon pathology, 28×28")
    dqn_nature()
    dqn_grid()
    dqn_minatar(4)
    dqn_minatar(6)
