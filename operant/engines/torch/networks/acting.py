"""Forward passes for acting: the few observations of one environment step, and hidden states of recurrent networks.

For so few numbers torch spends more on overhead than on arithmetic, so on the CPU numpy computes on
views of the same weights, which are never stale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

from operant.engines.torch.networks.layers import Flat
from operant.engines.torch.networks.recurrent import Core, RecurrentActorCritic, Stream

Step = Callable[[np.ndarray, np.ndarray], tuple[list[np.ndarray], np.ndarray]]
Layer = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


# What numpy computes exactly as torch does; other activations act through torch.
NUMPY_ACTIVATIONS: dict[type[nn.Module], Callable[[np.ndarray], np.ndarray]] = {
    nn.Tanh: np.tanh,
    nn.ReLU: lambda x: np.maximum(x, 0),
    Flat: lambda x: x.reshape(len(x), -1).astype(np.float32),
}


def forward_for_acting(layers: nn.Sequential) -> Callable[[np.ndarray], np.ndarray]:
    """A quick forward pass for the few observations of one environment step.

    On the CPU a small perceptron spends most of a torch call on overhead, so numpy views of the
    same weights (never stale: they share memory with the parameters) are about five times faster.
    Other networks and devices go through torch.
    """
    if _numpy_can(layers):
        return _numpy_forward(list(layers))
    device = next(layers.parameters()).device
    own = nn.Sequential(*layers)  # the same layers, for a learner may change how its own network computes

    def through_torch(obs: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return own(torch.from_numpy(obs).to(device)).cpu().numpy()

    return through_torch


def _numpy_can(layers: nn.Sequential) -> bool:
    on_cpu = all(p.device.type == "cpu" for p in layers.parameters())
    known = {nn.Linear, nn.LayerNorm, *NUMPY_ACTIVATIONS}
    return on_cpu and all(type(layer) in known for layer in layers)


def _numpy_forward(layers: Sequence[nn.Module]) -> Callable[[np.ndarray], np.ndarray]:
    steps: list[tuple[np.ndarray, np.ndarray] | Callable[[np.ndarray], np.ndarray]] = []
    for layer in layers:
        if isinstance(layer, nn.Linear):
            steps.append((layer.weight.detach().numpy().T, layer.bias.detach().numpy()))
        elif isinstance(layer, nn.LayerNorm):
            steps.append(_numpy_norm(layer))
        else:
            steps.append(NUMPY_ACTIVATIONS[type(layer)])

    def through_numpy(obs: np.ndarray) -> np.ndarray:
        x = obs
        for step in steps:
            x = x @ step[0] + step[1] if isinstance(step, tuple) else step(x)
        return x

    return through_numpy


def _numpy_norm(layer: nn.LayerNorm) -> Callable[[np.ndarray], np.ndarray]:
    scale, shift, eps = layer.weight.detach().numpy(), layer.bias.detach().numpy(), np.float32(layer.eps)

    def normalize(x: np.ndarray) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + eps) * scale + shift

    return normalize


class HiddenState:
    """The outputs of a recurrent network for the environments that it plays in, whose hidden states [N, H] it keeps.

    That of an environment that begins an episode is reset first. Where all begin, there may be another
    number of them than before: so one object serves one play after another.
    """

    def __init__(self, streams: Sequence[Step], widths: Sequence[int]) -> None:
        self._streams = streams
        self._widths = widths
        self._cuts = np.cumsum(widths)[:-1]
        self.states = np.zeros((0, sum(widths)), np.float32)

    def __call__(self, obs: np.ndarray, begun: np.ndarray) -> np.ndarray:
        """Policy outputs of normalized observations; every hidden state moves on by one step, into new arrays."""
        self.reset(begun)
        outputs, self.states = self._step(obs, self.states)
        return outputs[0]

    def reset(self, begun: np.ndarray) -> None:
        """Zero those of environments that begin an episode, in a new array: a rollout keeps rows of the old one."""
        if begun.all():
            self.states = np.zeros((len(begun), self.states.shape[1]), np.float32)
        elif begun.any():
            self.states = np.where(begun[:, None], np.float32(0), self.states)

    def values(self, obs: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """Values of observations that come after these hidden states [n, H]; those of the environments do not move."""
        outputs, _ = self._step(obs, hidden)
        return outputs[-1].squeeze(-1)

    def _step(self, obs: np.ndarray, hidden: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        outputs: list[np.ndarray] = []
        after: list[np.ndarray] = []
        for stream, part in zip(self._streams, np.split(hidden, self._cuts, axis=1), strict=True):
            found, kept = stream(obs, part)
            outputs += found
            after.append(kept)
        return outputs, np.concatenate(after, axis=1)

    def separate(self) -> HiddenState:
        """The policy alone, with hidden states of its own: for play that must leave these as they are."""
        return HiddenState(self._streams[:1], self._widths[:1])

    def state(self) -> dict[str, np.ndarray]:
        """Arrays that `restore` takes."""
        return {"memory": self.states}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take back what `state` gave."""
        self.states = state["memory"]


def hidden_state_of(net: RecurrentActorCritic) -> HiddenState:
    """The hidden states that play `net`, with its weights as they are at each call."""
    return HiddenState([_stream_step(stream) for stream in net.streams], [stream.core.width for stream in net.streams])


def _stream_step(stream: Stream) -> Step:
    """One step of a stream: on the CPU its core in numpy, elsewhere all of it in torch."""
    if next(stream.core.parameters()).device.type != "cpu":
        return _through_torch(stream)
    trunk, core = forward_for_acting(stream.trunk), core_step(stream.core)
    heads = [forward_for_acting(nn.Sequential(head)) for head in stream.heads]

    def step(obs: np.ndarray, hidden: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        features, kept = core(trunk(obs), hidden)
        return [head(features) for head in heads], kept

    return step


def core_step(core: Core) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """One step of a core: features and hidden states [N, ...] in, outputs and new hidden states out.

    In numpy, on views of the same weights: for so few numbers torch spends more on overhead than on arithmetic.
    """
    arrays = [parameter.detach().numpy().T for parameter in core.cells.parameters()]
    layers = list(zip(arrays[0::4], arrays[1::4], arrays[2::4], arrays[3::4], strict=True))
    cell = lstm_cell if isinstance(core.cells, nn.LSTM) else gru_cell

    def through_numpy(x: np.ndarray, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        before = hidden.reshape(-1, *core.shape)
        after = np.empty_like(before)
        for k, layer in enumerate(layers):
            after[:, :, k] = cell(x, before[:, :, k], layer)
            x = after[:, 0, k]
        return x, after.reshape(len(hidden), -1)

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

    def step(obs: np.ndarray, hidden: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        with torch.inference_mode():
            x, before = (torch.from_numpy(each).to(device) for each in (obs, hidden))
            output, after = stream.core(stream.trunk(x).unsqueeze(0), before)
            return [head(output.squeeze(0)).cpu().numpy() for head in stream.heads], after.cpu().numpy()

    return step
