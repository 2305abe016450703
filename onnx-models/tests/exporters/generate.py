#!/usr/bin/env python3
"""Exports small PyTorch models with both of its exporters, beside their outputs, losses and gradients.

    python3 -m venv venv && venv/bin/pip install torch onnx onnxscript
    venv/bin/python onnx-models/tests/exporters/generate.py [CASE ...]

Without arguments all cases are written. Exporters rename, transpose and stack weights, but never change their values, so
gradients are stored as one sorted list. Only the stack traces that the newer exporter attaches to every node are removed
from the files.
"""

import copy
import json
import pathlib
import sys
import warnings

import onnx
import torch
from torch import nn
from torch.nn import functional as F

FOLDER = pathlib.Path(__file__).parent
warnings.filterwarnings("ignore")


class Cnn(nn.Module):
    """Batch normalisation after a nonlinearity, which no exporter folds into the convolution before it."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 4, 3, padding=1, stride=2)
        self.norm = nn.BatchNorm2d(4)
        self.depthwise = nn.Conv2d(4, 4, 3, groups=4, padding="same")
        self.fc = nn.Linear(4, 3)
        self.norm.running_mean.uniform_(-0.5, 0.5)
        self.norm.running_var.uniform_(0.5, 1.5)

    def forward(self, x):
        x = self.norm(F.relu(self.conv1(x)))
        x = F.max_pool2d(F.leaky_relu(self.depthwise(x), 0.1), 2)
        x = F.adaptive_avg_pool2d(x, 1)
        return self.fc(F.dropout(torch.flatten(x, 1), 0.5, self.training))


class FreshNorm(nn.Module):
    """Batch normalisation as constructed: its bias equals its running mean (zeros), its weight its running variance (ones).

    Exporters merge initializers of equal values, so both statistics become aliases of weights. The layers differ in width,
    so that no two weights are merged.
    """

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3)
        self.norm1 = nn.BatchNorm2d(4)
        self.fc1 = nn.Linear(4, 5)
        self.norm2 = nn.BatchNorm1d(5)
        self.fc2 = nn.Linear(5, 3)

    def forward(self, x):
        x = self.norm1(torch.tanh(self.conv(x)))
        x = torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)
        return self.fc2(self.norm2(torch.tanh(self.fc1(x))))


class Conv1d(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 4, 3, dilation=2, padding=2)
        self.fc = nn.Linear(4 * 4, 2)

    def forward(self, x):
        x = F.avg_pool1d(torch.tanh(self.conv(x)), 2)
        return self.fc(x.view(x.size(0), -1))


class Recurrent(nn.Module):
    def __init__(self, layer, **options):
        super().__init__()
        self.layer = layer(3, 4, batch_first=True, **options)
        self.fc = nn.Linear(4, 1)

    def forward(self, x):
        return self.fc(self.layer(x)[0][:, -1])


class Stateful(nn.Module):
    """The hidden state comes in and goes out; the first output is what is learnt."""

    def __init__(self):
        super().__init__()
        self.layer = nn.GRU(3, 4, batch_first=True)
        self.fc = nn.Linear(4, 1)

    def forward(self, x, h):
        y, h = self.layer(x, h)
        return self.fc(y[:, -1]), h


class Attention(nn.Module):
    """What exporters make of layer normalisation, one attention head and residuals."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(4), nn.LayerNorm(4)
        self.qkv = nn.Linear(4, 12)
        self.fc = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
        self.out = nn.Linear(4, 2)
        # Exporters merge initializers that hold equal values, as two fresh normalisations do.
        for norm in (self.norm1, self.norm2):
            nn.init.uniform_(norm.weight, 0.5, 1.5)
            nn.init.uniform_(norm.bias, -0.5, 0.5)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        x = x + torch.softmax(q @ k.transpose(1, 2) / 2.0, -1) @ v
        x = x + self.fc(self.norm2(x))
        return self.out(x.mean(1))


class Shapes(nn.Module):
    """Sizes taken from the input, expanded constants, slices and concatenations."""

    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 4))
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        batch, length, width = x.shape
        token = self.token.expand(batch, 1, width)
        x = torch.cat([token, x], dim=1)
        x = self.fc(x.reshape(batch * (length + 1), width)).view(batch, length + 1, width)
        return (x[:, 1:] - x[:, :-1]).clamp(-0.4, 0.4).pow(2).sum(dim=(1, 2), keepdim=False).sqrt().unsqueeze(1)


CASES = {
    "mlp": (lambda: nn.Sequential(nn.Linear(3, 5), nn.Sigmoid(), nn.Linear(5, 2)), (4, 3), "mse"),
    "cnn": (Cnn, (2, 2, 8, 8), "cross-entropy"),
    "fresh-norm": (FreshNorm, (3, 2, 5, 5), "cross-entropy"),
    "conv1d": (Conv1d, (2, 3, 8), "mse"),
    "rnn": (lambda: Recurrent(nn.RNN), (2, 5, 3), "mse"),
    "rnn-relu": (lambda: Recurrent(nn.RNN, nonlinearity="relu"), (2, 5, 3), "mse"),
    "gru": (lambda: Recurrent(nn.GRU), (2, 5, 3), "mse"),
    "lstm": (lambda: Recurrent(nn.LSTM), (2, 5, 3), "mse"),
    "lstm-2-layers": (lambda: Recurrent(nn.LSTM, num_layers=2), (2, 4, 3), "mse"),
    "stateful-gru": (Stateful, (2, 5, 3), "mse"),
    "attention": (Attention, (2, 3, 4), "cross-entropy"),
    "shapes": (Shapes, (2, 3, 4), "mse"),
}
OPSETS = {"torchscript": [11, 13, 17], "dynamo": [18, 21]}


def raised_output(model, inputs):
    """The first output with every parameter raised by 0.1 and every buffer as it was."""
    raised = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in raised.parameters():
            parameter += 0.1
        output = raised(*inputs)
    return output[0] if isinstance(output, tuple) else output


def main():
    for name in sys.argv[1:] or CASES:
        build, shape, loss = CASES[name]
        torch.manual_seed(1)
        model = build().eval()
        x = torch.rand(shape) * 2 - 1
        inputs = (x, torch.zeros(1, shape[0], 4)) if name == "stateful-gru" else (x,)
        output = model(*inputs)
        output = output[0] if isinstance(output, tuple) else output
        if loss == "mse":
            targets = torch.rand_like(output)
            value = F.mse_loss(output, targets)
        else:
            targets = torch.arange(shape[0]) % output.shape[1]
            value = F.cross_entropy(output, targets)
        value.backward()
        gradient = torch.cat([p.grad.flatten() for p in model.parameters()]).sort().values
        record = {
            "shape": shape,
            "inputs": x.flatten().tolist(),
            "loss": loss,
            "targets": targets.flatten().tolist(),
            "output": output.flatten().tolist(),
            "value": value.item(),
            "parameters": [name for name, _ in model.named_parameters()],
            "sorted_gradient": gradient.tolist(),
            "raised_output": raised_output(model, inputs).flatten().tolist(),
        }
        text = json.dumps(record, separators=(",", ":"), default=list)
        (FOLDER / f"{name}.json").write_text(text + "\n")
        for exporter, opsets in OPSETS.items():
            for opset in opsets:
                path = FOLDER / f"{name}.{exporter}.{opset}.onnx"
                names = ["x", "h"][: len(inputs)]
                outputs = ["y", "hn"][: len(inputs)]
                free = {n: {1 if n.startswith("h") else 0: "batch"} for n in names + outputs}
                if name == "stateful-gru":
                    free["x"][1] = "length"
                if exporter == "dynamo":
                    sizes = {size: torch.export.Dim(size, min=1, max=64) for size in ("batch", "length")}
                    dims = tuple({axis: sizes[size] for axis, size in free[n].items()} for n in names)
                    options = {"dynamo": True, "dynamic_shapes": dims, "external_data": False, "verbose": False}
                else:
                    options = {"dynamo": False, "dynamic_axes": free}
                torch.onnx.export(
                    model, inputs, path, opset_version=opset, input_names=names, output_names=outputs, **options
                )
                file = onnx.load(path)
                for part in [file.graph, *file.graph.node, *file.graph.input, *file.graph.output, *file.graph.value_info]:
                    del part.metadata_props[:]
                onnx.save(file, path)


if __name__ == "__main__":
    main()
