"""Plays an exported Operant policy; needs numpy only, and nothing of Operant: copy this file where you need it.

    policy = load("policy.npz")            # or "policy.safetensors"
    action = policy.act(observation)       # one observation or a batch, as the environment gives it
    policy.reset()                         # recurrent policies: where an episode begins

A policy is a list of layers. `layers` lead from observations to the output of the network (logits, action values or
means), `head` from that to the action that the environment takes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FORMAT, VERSION = "operant-policy", 1
HEADER = "header"  # of an .npz: the array that holds the header; of a .safetensors: the key in its metadata
ILLEGAL = np.float32(-1e9)  # output of an action that the mask forbids

Layer = dict[str, Any]


class Policy:
    """A policy of a header and its layers, which hold their arrays; acts deterministically."""

    def __init__(self, header: dict[str, Any]) -> None:
        if header.get("format") != FORMAT or header.get("version") != VERSION:
            raise ValueError(f"not a file of {FORMAT} version {VERSION}")
        self.header = header
        self.shape = tuple(header["observation"]["shape"])
        self.hidden_size = int(header["hidden_size"])
        self._hidden: np.ndarray | None = None

    def act(self, obs: Any, mask: Any = None) -> Any:
        """The action for one observation, or one for each of a batch; the hidden state is kept for the next call."""
        obs = np.asarray(obs, self.header["observation"]["dtype"])
        single = obs.ndim == len(self.shape)
        batch = obs[None] if single else obs
        legal = None if mask is None else np.asarray(mask, bool).reshape(len(batch), -1)
        action, _, self._hidden = self(batch, self._hidden, legal)
        return action[0] if single else action

    def reset(self) -> None:
        """Forget the hidden state."""
        self._hidden = None

    def __call__(
        self, obs: np.ndarray, hidden: np.ndarray | None = None, mask: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Actions, outputs of the network, and hidden states [N, H] after observations [N, ...]; nothing is kept."""
        before = np.zeros((len(obs), self.hidden_size), np.float32) if hidden is None else hidden
        after = before.copy()
        output = through(self.header["layers"], obs, before, after)
        legal = output if mask is None else np.where(mask, output, ILLEGAL)
        action = through(self.header["head"], legal, before, after)
        return action.astype(self.header["action"]["dtype"]), output, after


def through(layers: list[Layer], x: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """`x` through the layers; recurrent ones read the hidden states `before` and write those `after`."""
    for layer in layers:
        if layer["op"] == "residual":
            x = x + through(layer["layers"], x, before, after)
        elif layer["op"] in CELLS:
            x = CELLS[layer["op"]](layer, x, before, after)
        else:
            x = OPS[layer["op"]](layer, x)
    return x


def normalize(layer: Layer, x: np.ndarray) -> np.ndarray:
    """(x - mean) / std within +-clip, in the precision of the statistics."""
    scaled = (x.astype(layer["mean"].dtype) - layer["mean"]) / layer["std"]
    return np.clip(scaled, -layer["clip"], layer["clip"]).astype(np.float32)


def layer_norm(layer: Layer, x: np.ndarray) -> np.ndarray:
    """Each row at mean 0 and deviation 1, then scaled and shifted."""
    centered = x - x.mean(-1, keepdims=True)
    deviation = np.sqrt(np.square(centered).mean(-1, keepdims=True) + np.float32(layer["eps"]))
    return centered / deviation * layer["scale"] + layer["shift"]


def image(layer: Layer, x: np.ndarray) -> np.ndarray:
    """Images in the order batch, channels, height, width."""
    return x.transpose(layer["axes"]).reshape(len(x), *layer["size"]).astype(np.float32)


def conv(layer: Layer, x: np.ndarray) -> np.ndarray:
    """Square kernels [outputs, inputs, K, K], with zeros around the image."""
    weight, stride, pad = layer["weight"], layer["stride"], layer["padding"]
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    patches = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    summed = np.tensordot(patches, weight, ((1, 4, 5), (1, 2, 3))) + layer["bias"]
    return summed.transpose(0, 3, 1, 2)


def max_pool(layer: Layer, x: np.ndarray) -> np.ndarray:
    """The largest of each square of pixels."""
    kernel, stride, pad = layer["kernel"], layer["stride"], layer["padding"]
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))
    return windows[:, :, ::stride, ::stride].max((-2, -1))


def scale(layer: Layer, x: np.ndarray) -> np.ndarray:
    """Actions within low and high (of the policy), stretched to the environment's bounds."""
    shaped = x.reshape(len(x), *layer["low"].shape)
    return np.minimum(np.maximum(shaped, layer["low"]), layer["high"]) * layer["half"] + layer["middle"]


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), by a form that cannot overflow."""
    return np.float32(0.5) * (1 + np.tanh(np.float32(0.5) * x))


def elu(x: np.ndarray) -> np.ndarray:
    """x where it is positive, else exp(x) - 1."""
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def gelu(x: np.ndarray) -> np.ndarray:
    """x P(normal < x)."""
    erf = np.vectorize(math.erf, otypes=[np.float32])
    return x * np.float32(0.5) * (1 + erf(x * np.float32(math.sqrt(0.5))))


def gru(layer: Layer, x: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """One step of a gated recurrent unit; its state begins at number `hidden` of the hidden state."""
    units, at = layer["units"], layer["hidden"]
    h = before[:, at : at + units]
    new, old = x @ layer["input"] + layer["input_bias"], h @ layer["recurrent"] + layer["recurrent_bias"]
    gates = sigmoid(new[:, : 2 * units] + old[:, : 2 * units])
    candidate = np.tanh(new[:, 2 * units :] + gates[:, :units] * old[:, 2 * units :])
    after[:, at : at + units] = candidate + gates[:, units:] * (h - candidate)
    return after[:, at : at + units]


def lstm(layer: Layer, x: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """One step of a long short-term memory; its state begins at `hidden`, its cells at `cell`."""
    units, at, cell_at = layer["units"], layer["hidden"], layer["cell"]
    h, c = before[:, at : at + units], before[:, cell_at : cell_at + units]
    sums = x @ layer["input"] + layer["input_bias"] + h @ layer["recurrent"] + layer["recurrent_bias"]
    into, forget, candidate, out = np.split(sums, 4, -1)
    cell = sigmoid(forget) * c + sigmoid(into) * np.tanh(candidate)
    after[:, cell_at : cell_at + units] = cell
    after[:, at : at + units] = sigmoid(out) * np.tanh(cell)
    return after[:, at : at + units]


CELLS: dict[str, Callable[..., np.ndarray]] = {"gru": gru, "lstm": lstm}
OPS: dict[str, Callable[[Layer, np.ndarray], np.ndarray]] = {
    "normalize": normalize,
    "flatten": lambda layer, x: x.reshape(len(x), -1).astype(np.float32),
    "dense": lambda layer, x: x @ layer["weight"] + layer["bias"],
    "layer_norm": layer_norm,
    "image": image,
    "conv": conv,
    "max_pool": max_pool,
    "tanh": lambda layer, x: np.tanh(x),
    "relu": lambda layer, x: np.maximum(x, 0),
    "gelu": lambda layer, x: gelu(x),
    "silu": lambda layer, x: x * sigmoid(x),
    "elu": lambda layer, x: elu(x),
    "selu": lambda layer, x: (
        np.float32(1.0507009873554805) * np.where(x > 0, x, np.float32(1.6732632423543772) * elu(x))
    ),
    "leaky_relu": lambda layer, x: np.where(x > 0, x, np.float32(0.01) * x),
    "sigmoid": lambda layer, x: sigmoid(x),
    "mean_of_groups": lambda layer, x: x.reshape(len(x), layer["groups"], -1).mean(-1),
    "first": lambda layer, x: x[:, : layer["count"]],
    "argmax": lambda layer, x: x.argmax(-1) + layer["start"],
    "scale": scale,
}


def load(path: str | Path) -> Policy:
    """The policy in an .npz or .safetensors file."""
    header, arrays = read_safetensors(Path(path)) if str(path).endswith(".safetensors") else read_npz(Path(path))
    return Policy(filled(header, arrays))


def read_npz(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of an .npz file."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    return json.loads(str(arrays.pop(HEADER))), arrays


def read_safetensors(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a .safetensors file: a length, a table in JSON, then the bytes of all arrays."""
    types = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "BOOL": "?"}
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    table = json.loads(data[8:begin])
    header = json.loads(table.pop("__metadata__")[HEADER])
    arrays = {}
    for name, entry in table.items():
        first, last = entry["data_offsets"]
        flat = np.frombuffer(data[begin + first : begin + last], types[entry["dtype"]])
        arrays[name] = flat.reshape(entry["shape"])
    return header, arrays


def filled(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A header with arrays where it names them, as {"array": NAME}."""
    if isinstance(value, dict):
        return arrays[value["array"]] if set(value) == {"array"} else {k: filled(v, arrays) for k, v in value.items()}
    return [filled(each, arrays) for each in value] if isinstance(value, list) else value
