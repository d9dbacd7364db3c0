"""A policy as a list of layers: what every engine can say of its policies, and every format is written from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from operant.policy.reader import FORMAT, VERSION, Layer

CELLS = ("gru", "lstm")


@dataclass(frozen=True)
class Network:
    """Layers from raw observations to outputs, and a head from those to the actions of the environment.

    Each layer is a mapping with its `op` and its arguments, arrays among them; `operant.policy.reader` says what
    each op computes. `masked` says whether the environment tells which actions are legal.
    """

    obs_shape: tuple[int, ...]
    obs_dtype: str
    layers: Sequence[Layer]
    head: Sequence[Layer]
    action_shape: tuple[int, ...]
    action_dtype: str
    masked: bool = False

    @property
    def hidden_size(self) -> int:
        """Numbers in the hidden state; 0 where the policy is not recurrent."""
        cells = [layer for layer in self.layers if layer["op"] in CELLS]
        return sum(layer["units"] * (2 if layer["op"] == "lstm" else 1) for layer in cells)

    def header(self) -> dict[str, Any]:
        """What `reader.Policy` takes: everything, with the arrays in their places."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "observation": {"shape": list(self.obs_shape), "dtype": self.obs_dtype},
            "action": {"shape": list(self.action_shape), "dtype": self.action_dtype},
            "hidden_size": self.hidden_size,
            "masked": self.masked,
            "layers": list(self.layers),
            "head": list(self.head),
        }

    def parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The header in words that JSON has, and the arrays by the names under which it mentions them."""
        arrays: dict[str, np.ndarray] = {}
        header = self.header()
        for part in ("layers", "head"):
            header[part] = [_named(layer, f"{part}.{k}", arrays) for k, layer in enumerate(header[part])]
        return header, arrays


def _named(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, np.ndarray):
        arrays[name] = np.ascontiguousarray(value).reshape(value.shape)
        return {"array": name}
    if isinstance(value, dict):
        return {key: _named(each, f"{name}.{key}", arrays) for key, each in value.items()}
    if isinstance(value, list):
        return [_named(each, f"{name}.{k}", arrays) for k, each in enumerate(value)]
    return value


def discrete_head(start: int = 0) -> list[Layer]:
    """The action with the largest output; the environment counts actions from `start`."""
    return [{"op": "argmax", "start": start}]


def box_head(bounded: np.ndarray, half: np.ndarray, middle: np.ndarray) -> list[Layer]:
    """Actions in [-1, 1] stretched to the environment's bounds; those that have none pass as they are."""
    low, high = (np.where(bounded, np.float32(side), np.float32(side * np.inf)) for side in (-1, 1))
    return [{"op": "scale", "low": low, "high": high, "half": half, "middle": middle}]
