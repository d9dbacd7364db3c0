"""A network as a TorchScript module: `forward(obs[, hidden][, mask])` gives action, output and, recurrent, next hidden.

The tuple has two members, or three where the policy is recurrent.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from operant.policy.network import Network
from operant.policy.reader import ILLEGAL, Layer


class ScriptLayer(nn.Module):
    """One layer of a network, its arrays as buffers."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.op = layer["op"]
        self.arguments = {name: value for name, value in layer.items() if not isinstance(value, np.ndarray | list)}
        self.lists = {name: value for name, value in layer.items() if isinstance(value, list) and name != "layers"}
        self.inner = nn.ModuleList(ScriptLayer(each) for each in layer.get("layers", []))
        for name, value in layer.items():
            if isinstance(value, np.ndarray):
                self.register_buffer(f"a_{name}", torch.tensor(value))

    def __getitem__(self, name: str) -> Any:
        """An argument of the layer."""
        buffer = getattr(self, f"a_{name}", None)
        return buffer if buffer is not None else self.lists.get(name, self.arguments.get(name))

    def forward(self, x: Tensor, before: Tensor, after: Tensor) -> tuple[Tensor, Tensor]:
        """The layer's result, and the hidden state with what it wrote there."""
        if self.op == "residual":
            inner = x
            for layer in self.inner:
                inner, after = layer(inner, before, after)
            return x + inner, after
        if self.op in CELLS:
            return CELLS[self.op](self, x, before, after)
        return OPS[self.op](self, x), after


def _normalize(layer: ScriptLayer, x: Tensor) -> Tensor:
    return ((x.to(layer["mean"].dtype) - layer["mean"]) / layer["std"]).clamp(-layer["clip"], layer["clip"]).float()


def _scale(layer: ScriptLayer, x: Tensor) -> Tensor:
    shaped = x.reshape(-1, *layer["low"].shape)
    return torch.minimum(torch.maximum(shaped, layer["low"]), layer["high"]) * layer["half"] + layer["middle"]


def _layer_norm(layer: ScriptLayer, x: Tensor) -> Tensor:
    return functional.layer_norm(x, layer["scale"].shape, layer["scale"], layer["shift"], layer["eps"])


def _gru(layer: ScriptLayer, x: Tensor, before: Tensor, after: Tensor) -> tuple[Tensor, Tensor]:
    at, units = layer["hidden"], layer["units"]
    h = before[:, at : at + units]
    new = (x @ layer["input"] + layer["input_bias"]).chunk(3, -1)
    old = (h @ layer["recurrent"] + layer["recurrent_bias"]).chunk(3, -1)
    reset, update = torch.sigmoid(new[0] + old[0]), torch.sigmoid(new[1] + old[1])
    candidate = torch.tanh(new[2] + reset * old[2])
    moved = candidate + update * (h - candidate)
    return moved, _written(after, at, moved)


def _lstm(layer: ScriptLayer, x: Tensor, before: Tensor, after: Tensor) -> tuple[Tensor, Tensor]:
    at, cell_at, units = layer["hidden"], layer["cell"], layer["units"]
    h, c = before[:, at : at + units], before[:, cell_at : cell_at + units]
    sums = x @ layer["input"] + layer["input_bias"] + h @ layer["recurrent"] + layer["recurrent_bias"]
    into, forget, candidate, out = sums.chunk(4, -1)
    cell = torch.sigmoid(forget) * c + torch.sigmoid(into) * torch.tanh(candidate)
    moved = torch.sigmoid(out) * torch.tanh(cell)
    return moved, _written(_written(after, cell_at, cell), at, moved)


def _written(hidden: Tensor, at: int, part: Tensor) -> Tensor:
    return torch.cat((hidden[:, :at], part, hidden[:, at + part.shape[1] :]), 1)


CELLS: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {"gru": _gru, "lstm": _lstm}
OPS: dict[str, Callable[[ScriptLayer, Tensor], Tensor]] = {
    "normalize": _normalize,
    "flatten": lambda layer, x: x.flatten(1).float(),
    "dense": lambda layer, x: x @ layer["weight"] + layer["bias"],
    "layer_norm": _layer_norm,
    "image": lambda layer, x: x.permute(layer["axes"]).reshape(-1, *layer["size"]).float(),
    "conv": lambda layer, x: functional.conv2d(x, layer["weight"], layer["bias"], layer["stride"], layer["padding"]),
    "max_pool": lambda layer, x: functional.max_pool2d(x, layer["kernel"], layer["stride"], layer["padding"]),
    "tanh": lambda layer, x: torch.tanh(x),
    "relu": lambda layer, x: functional.relu(x),
    "gelu": lambda layer, x: functional.gelu(x),
    "silu": lambda layer, x: functional.silu(x),
    "elu": lambda layer, x: functional.elu(x),
    "selu": lambda layer, x: functional.selu(x),
    "leaky_relu": lambda layer, x: functional.leaky_relu(x),
    "sigmoid": lambda layer, x: torch.sigmoid(x),
    "mean_of_groups": lambda layer, x: x.unflatten(-1, (layer["groups"], -1)).mean(-1),
    "first": lambda layer, x: x[:, : layer["count"]],
    "argmax": lambda layer, x: x.argmax(-1) + layer["start"],
    "scale": _scale,
}


class ScriptPolicy(nn.Module):
    """All layers of a network."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.layers = nn.ModuleList(ScriptLayer(layer) for layer in network.layers)
        self.head = nn.ModuleList(ScriptLayer(layer) for layer in network.head)
        self.recurrent, self.masked = bool(network.hidden_size), network.masked
        self.dtype = getattr(torch, network.action_dtype)

    def forward(self, obs: Tensor, *further: Tensor) -> tuple[Tensor, ...]:
        """Action, output and, of a recurrent policy, the next hidden state."""
        before = after = further[0] if self.recurrent else obs
        x = obs
        for layer in self.layers:
            x, after = layer(x, before, after)
        output = x
        if self.masked:
            x = torch.where(further[-1], x, float(ILLEGAL))
        for layer in self.head:
            x, after = layer(x, before, after)
        action = x.to(self.dtype)
        return (action, output, after) if self.recurrent else (action, output)


def write(network: Network, path: Path, examples: Sequence[np.ndarray]) -> None:
    """Trace the network with example inputs, of any batch size, and save it."""
    tensors = tuple(torch.from_numpy(example) for example in examples)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch would rather have torch.export
        torch.jit.save(torch.jit.trace(ScriptPolicy(network).eval(), tensors), path)


def load(path: Path) -> Callable[..., tuple[np.ndarray, ...]]:
    """The module in a file, on numpy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        module = torch.jit.load(path)

    def run(*inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        with torch.no_grad():
            return tuple(each.numpy() for each in module(*(torch.from_numpy(np.ascontiguousarray(i)) for i in inputs)))

    return run
