"""Recurrent networks: hidden layers, then gated recurrent ones, then the heads of actor and critic.

They learn from whole sequences, what one environment played in one update. A sequence may hold the
ends of episodes; it is cut there, and the pieces run side by side through torch's own recurrent
layers, each from its own start. So nothing passes from one episode to the next, neither hidden state
nor gradient, at the cost of one call. The state that an environment brings into the rollout is a constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from operant.engines.torch.networks.heads import Shape, features
from operant.engines.torch.networks.layers import linear
from operant.spec.settings.nets import Memory, Net


class Core(nn.Module):
    """The recurrent layers. A hidden state is a vector of `width` numbers, with the cells of an LSTM."""

    def __init__(self, spec: Net, memory: Memory, inputs: int) -> None:
        super().__init__()
        is_lstm = memory.cell == "lstm"
        self.cells = (nn.LSTM if is_lstm else nn.GRU)(inputs, memory.units, memory.layers)
        self.shape = (2 if is_lstm else 1, memory.layers, memory.units)
        self.width = int(np.prod(self.shape))
        initialize(self.cells, spec)

    def forward(self, x: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [L, S, units] of inputs [L, S, ...] from hidden states [S, width], and those at the end."""
        parts = hidden.reshape(-1, *self.shape).permute(1, 2, 0, 3).contiguous()
        output, after = self.cells(x, tuple(parts) if len(parts) == 2 else parts[0])
        kept = torch.stack(after) if isinstance(after, tuple) else after.unsqueeze(0)
        return output, kept.permute(2, 0, 1, 3).flatten(1)


class Stream(nn.Module):
    """One way from observations through a core to one or more heads."""

    def __init__(self, spec: Net, observation: Shape, heads: list[tuple[int, float]]) -> None:
        super().__init__()
        assert spec.memory is not None, "a network without recurrent layers is an ActorCritic"
        self.trunk, width = features(spec, observation)
        self.core = Core(spec, spec.memory, width)
        self.heads = nn.ModuleList(linear(spec, spec.memory.units, outputs, gain) for outputs, gain in heads)

    def forward(self, obs: Tensor, segments: Segments, hidden: Tensor) -> list[Tensor]:
        """The output of every head at all steps [N * T, ...] of the observations [N, T, ...]."""
        features = self.trunk(obs.flatten(0, 1))[segments.step]
        began = hidden[segments.owner] * segments.carries
        output, _ = self.core(features.unflatten(0, (-1, len(began))), began)
        flat = output.flatten(0, 1)[segments.place]
        return [head(flat) for head in self.heads]


class RecurrentActorCritic(nn.Module):
    """A policy head and a value, on recurrent layers of their own (the value by `critic`) or shared ones."""

    def __init__(self, spec: Net, observation: Shape, outputs: int, discrete: bool, critic: Net | None = None) -> None:
        super().__init__()
        policy, value = (outputs, spec.actor_gain), (1, spec.critic_gain)
        self.actor = Stream(spec, observation, [policy, value] if spec.shared else [policy])
        self.critic = None if spec.shared else Stream(critic or spec, observation, [value])
        self.log_std = None if discrete else nn.Parameter(torch.full((outputs,), spec.log_std_init))

    @property
    def streams(self) -> list[Stream]:
        """The policy's stream, and that of the value where it has one of its own."""
        return [self.actor] if self.critic is None else [self.actor, self.critic]

    def forward(self, obs: Tensor, begun: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Policy outputs [N, T, K] and values [N, T] of the sequences `obs` [N, T, ...].

        `begun` [N, T] marks the first observations of episodes; `hidden` [N, H] is the hidden state
        before the first step.
        """
        segments = cut(begun.cpu().numpy(), obs.device)
        parts = hidden.split([stream.core.width for stream in self.streams], -1)
        found = [out for stream, part in zip(self.streams, parts, strict=True) for out in stream(obs, segments, part)]
        output, value = (each.unflatten(0, begun.shape) for each in found)
        return output, value.squeeze(-1)

    def parameter_groups(self) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """Parameters that learn at the actor's rate, and those that learn at the critic's."""
        critic = list((self.critic or self.actor.heads[-1]).parameters())
        known = {id(p) for p in critic}
        return [p for p in self.parameters() if id(p) not in known], critic


@dataclass(frozen=True)
class Segments:
    """Sequences [N, T] cut into S segments, laid side by side in L rows, each from its start.

    `step` [L * S] is the step (of N * T) at each place; places beyond a segment's end hold any
    step, and nobody reads their output. `place` [N * T] is where each step lies. A segment goes on
    from the hidden state of sequence `owner` where `carries` is 1, and from nothing where it is 0.
    """

    step: Tensor
    place: Tensor
    owner: Tensor
    carries: Tensor


def cut(begun: np.ndarray, device: torch.device) -> Segments:
    """The segments of sequences whose episodes begin where `begun` [N, T] is true."""
    starts = begun.copy()
    starts[:, 0] = True
    first = np.flatnonzero(starts)
    segment = starts.reshape(-1).cumsum() - 1
    steps = np.arange(begun.size)
    offset = steps - first[segment]
    place = offset * len(first) + segment
    step = np.zeros((offset.max() + 1) * len(first), np.int64)
    step[place] = steps
    carries = ~begun.reshape(-1)[first, None]
    owner = first // begun.shape[1]
    arrays = (step, place, owner, carries.astype(np.float32))
    return Segments(*(torch.from_numpy(array).to(device) for array in arrays))


def initialize(cells: nn.GRU | nn.LSTM, spec: Net) -> None:
    """Weights as the spec says, gate by gate and at a gain of 1, since gates saturate; biases at zero."""
    if spec.init == "torch":
        return
    start = getattr(nn.init, f"{spec.init}_")
    for name, parameter in cells.named_parameters():
        if name.startswith("bias"):
            nn.init.zeros_(parameter)
        else:
            for gate in parameter.detach().split(cells.hidden_size):
                start(gate)
