"""Acting with a memory: one step of a recurrent network in many worlds, and what each of them remembers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

from operant.engines.torch.nets import forward_for_acting
from operant.engines.torch.recurrent import Core, RecurrentActorCritic, Stream

Step = Callable[[np.ndarray, np.ndarray], tuple[list[np.ndarray], np.ndarray]]
Layer = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Recall:
    """The outputs of a recurrent network for the worlds it plays in, whose memories it keeps.

    A world that begins an episode is forgotten first. Where every world begins, there may be another
    number of them than before: so one object serves one play after another.
    """

    def __init__(self, streams: Sequence[Step], widths: Sequence[int]) -> None:
        self._streams = streams
        self._widths = widths
        self._cuts = np.cumsum(widths)[:-1]
        self.memory = np.zeros((0, sum(widths)), np.float32)

    def __call__(self, seen: np.ndarray, begun: np.ndarray) -> np.ndarray:
        """Policy outputs of normalised observations; every memory moves on by one step, into new arrays."""
        self.forget(begun)
        outputs, self.memory = self._step(seen, self.memory)
        return outputs[0]

    def forget(self, begun: np.ndarray) -> None:
        """Clear the memories of worlds that begin an episode, in a new array: a rollout keeps rows of the old one."""
        if begun.all():
            self.memory = np.zeros((len(begun), self.memory.shape[1]), np.float32)
        elif begun.any():
            self.memory = np.where(begun[:, None], np.float32(0), self.memory)

    def foresee(self, seen: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """Values of observations that come after these memories [n, M]; those of the worlds do not move."""
        outputs, _ = self._step(seen, memory)
        return outputs[-1].squeeze(-1)

    def _step(self, seen: np.ndarray, memory: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        outputs: list[np.ndarray] = []
        after: list[np.ndarray] = []
        for stream, part in zip(self._streams, np.split(memory, self._cuts, axis=1), strict=True):
            found, kept = stream(seen, part)
            outputs += found
            after.append(kept)
        return outputs, np.concatenate(after, axis=1)

    def apart(self) -> Recall:
        """The policy alone, with memories of its own: for play that must leave these as they are."""
        return Recall(self._streams[:1], self._widths[:1])

    def state(self) -> dict[str, np.ndarray]:
        """Arrays that `restore` takes."""
        return {"memory": self.memory}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take back what `state` gave."""
        self.memory = state["memory"]


def recall_of(net: RecurrentActorCritic) -> Recall:
    """The memory that plays `net`, seeing its weights as they are at each call."""
    return Recall([_stream_step(stream) for stream in net.streams], [stream.core.width for stream in net.streams])


def _stream_step(stream: Stream) -> Step:
    """One step of a stream: on the CPU its core in numpy, elsewhere all of it in torch."""
    if next(stream.core.parameters()).device.type != "cpu":
        return _through_torch(stream)
    trunk, core = forward_for_acting(stream.trunk), core_step(stream.core)
    heads = [forward_for_acting(nn.Sequential(head)) for head in stream.heads]

    def step(seen: np.ndarray, memory: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        features, kept = core(trunk(seen), memory)
        return [head(features) for head in heads], kept

    return step


def core_step(core: Core) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """One step of a core: features and memories [N, ...] in, outputs and new memories out.

    In numpy, on views of the same weights: for so few numbers torch spends more on overhead than on arithmetic.
    """
    arrays = [parameter.detach().numpy().T for parameter in core.cells.parameters()]
    layers = list(zip(arrays[0::4], arrays[1::4], arrays[2::4], arrays[3::4], strict=True))
    cell = lstm_cell if isinstance(core.cells, nn.LSTM) else gru_cell

    def through_numpy(x: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        before = memory.reshape(-1, *core.shape)
        after = np.empty_like(before)
        for k, layer in enumerate(layers):
            after[:, :, k] = cell(x, before[:, :, k], layer)
            x = after[:, 0, k]
        return x, after.reshape(len(memory), -1)

    return through_numpy


def gru_cell(x: np.ndarray, state: np.ndarray, layer: Layer) -> np.ndarray:
    """h' = n + z (h - n), n = tanh(W x + r U h), with gates r and z (Cho et al., 2014); `state` [N, 1, units] is h."""
    h = state[:, 0]
    units = h.shape[-1]
    new, old = x @ layer[0] + layer[2], h @ layer[1] + layer[3]
    gates = sigmoid(new[:, : 2 * units] + old[:, : 2 * units])
    reset, update = gates[:, :units], gates[:, units:]
    candidate = np.tanh(new[:, 2 * units :] + reset * old[:, 2 * units :])
    return (candidate + update * (h - candidate))[:, None]


def lstm_cell(x: np.ndarray, state: np.ndarray, layer: Layer) -> np.ndarray:
    """c' = f c + i g and h' = o tanh(c') (Hochreiter and Schmidhuber, 1997); `state` [N, 2, units] is h and c."""
    units = state.shape[-1]
    sums = x @ layer[0] + layer[2] + state[:, 0] @ layer[1] + layer[3]
    into, forget = sigmoid(sums[:, :units]), sigmoid(sums[:, units : 2 * units])
    candidate, out = np.tanh(sums[:, 2 * units : 3 * units]), sigmoid(sums[:, 3 * units :])
    cell = forget * state[:, 1] + into * candidate
    return np.stack((out * np.tanh(cell), cell), axis=1)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), by a form that cannot overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def _through_torch(stream: Stream) -> Step:
    device = next(stream.parameters()).device

    def step(seen: np.ndarray, memory: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        with torch.inference_mode():
            obs, before = (torch.from_numpy(each).to(device) for each in (seen, memory))
            output, after = stream.core(stream.trunk(obs).unsqueeze(0), before)
            return [head(output.squeeze(0)).cpu().numpy() for head in stream.heads], after.cpu().numpy()

    return step
