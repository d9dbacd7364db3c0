"""Networks for policies, values and action values: heads on hidden layers, which may begin with convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from operant.engines.torch.layers import ACTIVATIONS, HIDDEN_GAIN, linear
from operant.engines.torch.vision import ImageTrunk, image_layers
from operant.spec.settings.nets import Net

Shape = int | tuple[int, ...]
Judge = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


class Flat(nn.Module):
    """Observations of several axes as one vector of floats."""

    def forward(self, obs: Tensor) -> Tensor:
        return obs.flatten(1).float()


# What numpy computes exactly as torch does; other activations act through torch.
NUMPY_ACTIVATIONS: dict[type[nn.Module], Callable[[np.ndarray], np.ndarray]] = {
    nn.Tanh: np.tanh,
    nn.ReLU: lambda x: np.maximum(x, 0),
    Flat: lambda x: x.reshape(len(x), -1).astype(np.float32),
}


class ActorCritic(nn.Module):
    """A policy head and a value, on separate or shared hidden layers.

    `policy` gives logits for discrete actions and means for continuous ones, whose deviation is
    the state-independent parameter `log_std`.
    """

    def __init__(self, spec: Net, observation: Shape, outputs: int, discrete: bool) -> None:
        super().__init__()
        first, width = features(spec, observation)
        if spec.shared:
            self.trunk = first
            self.actor = nn.Sequential(linear(spec, width, outputs, gain=spec.actor_gain))
            self.critic = nn.Sequential(linear(spec, width, 1, gain=spec.critic_gain))
        else:
            self.trunk = nn.Sequential()
            self.actor = nn.Sequential(*first, linear(spec, width, outputs, gain=spec.actor_gain))
            self.critic = nn.Sequential(*features(spec, observation)[0], linear(spec, width, 1, gain=spec.critic_gain))
        self.log_std = None if discrete else nn.Parameter(torch.full((outputs,), spec.log_std_init))

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Policy output and value of each observation."""
        features = self.trunk(obs)
        return self.actor(features), self.critic(features).squeeze(-1)

    def value(self, obs: Tensor) -> Tensor:
        """Value of each observation."""
        return self.critic(self.trunk(obs)).squeeze(-1)

    def judge_for_acting(self) -> Judge:
        """Policy output and value of the observations of one environment step, through torch."""
        device = next(self.parameters()).device
        trunk, actor, critic = (nn.Sequential(*part) for part in (self.trunk, self.actor, self.critic))

        def judge(obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            with torch.inference_mode():
                features = trunk(torch.from_numpy(obs).to(device))
                # One tensor, so that a device is waited for only once.
                both = torch.cat((actor(features), critic(features)), -1).cpu().numpy()
            return both[:, :-1], both[:, -1]

        return judge

    def policy_layers(self) -> nn.Sequential:
        """The layers from observation to policy output."""
        return nn.Sequential(*self.trunk, *self.actor)

    def parameter_groups(self) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """Parameters that learn at the actor's rate, and those that learn at the critic's."""
        critic = list(self.critic.parameters())
        known = {id(p) for p in critic}
        return [p for p in self.parameters() if id(p) not in known], critic


class PolicyNet(nn.Module):
    """A policy alone: logits of discrete actions, or means of continuous ones beside their `log_std`."""

    def __init__(self, spec: Net, observation: Shape, outputs: int, discrete: bool) -> None:
        super().__init__()
        first, width = features(spec, observation)
        self.layers = nn.Sequential(*first, linear(spec, width, outputs, gain=spec.actor_gain))
        self.log_std = None if discrete else nn.Parameter(torch.full((outputs,), spec.log_std_init))

    def forward(self, obs: Tensor) -> Tensor:
        """Policy output of each observation."""
        return self.layers(obs)


class QNet(nn.Module):
    """Action values; with `duelling`, Q = V + A - mean(A) (Wang et al., 2016, eq. 9)."""

    def __init__(self, spec: Net, observation: Shape, actions: int) -> None:
        super().__init__()
        self.trunk, width = features(spec, observation)
        self.advantage = linear(spec, width, actions, gain=spec.critic_gain)
        self.state_value = linear(spec, width, 1, gain=spec.critic_gain) if spec.duelling else None

    def forward(self, obs: Tensor) -> Tensor:
        """Value of every action in each observation."""
        features = self.trunk(obs)
        advantage = self.advantage(features)
        if self.state_value is None:
            return advantage
        return self.state_value(features) + advantage - advantage.mean(-1, keepdim=True)

    def greedy_layers(self) -> nn.Sequential:
        """Layers whose largest output is the greedy action; a state value would not change which."""
        return nn.Sequential(*self.trunk, self.advantage)


def features(spec: Net, observation: Shape) -> tuple[nn.Sequential, int]:
    """Layers from observations of this shape (a number: vectors) to the features of a head, and how many there are."""
    shape = (observation,) if isinstance(observation, int) else observation
    if spec.READS_IMAGES:
        eyes, width = image_layers(spec, shape)
        layers = ImageTrunk(list(eyes), list(hidden_layers(spec, width)))
    else:
        width = math.prod(shape)
        layers = nn.Sequential(*([Flat()] if len(shape) > 1 else []), *hidden_layers(spec, width))
    return layers, (spec.hidden or (width,))[-1]


def hidden_layers(spec: Net, inputs: int) -> nn.Sequential:
    """Linear and activation for each hidden width, with a norm between them where the spec wants one."""
    layers: list[nn.Module] = []
    for before, after in pairwise((inputs, *spec.hidden)):
        norm = [nn.LayerNorm(after)] if spec.layer_norm else []
        layers += [linear(spec, before, after, gain=HIDDEN_GAIN), *norm, ACTIVATIONS[spec.activation]()]
    return nn.Sequential(*layers)


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

    def normalise(x: np.ndarray) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + eps) * scale + shift

    return normalise
