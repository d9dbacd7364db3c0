"""Networks for policies, values and action values: heads on hidden layers, which may begin with convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from operant.engines.torch.networks.cnn import ImageTrunk, image_layers
from operant.engines.torch.networks.layers import ACTIVATIONS, HIDDEN_GAIN, Flat, linear
from operant.spec.settings.nets import Net

Shape = int | tuple[int, ...]
PolicyAndValue = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


class ActorCritic(nn.Module):
    """A policy head and a value, on separate or shared hidden layers.

    `policy` gives logits for discrete actions and means for continuous ones, whose deviation is
    the state-independent parameter `log_std`. A value on layers of its own may have another form, `critic`.
    """

    def __init__(self, spec: Net, observation: Shape, outputs: int, discrete: bool, critic: Net | None = None) -> None:
        super().__init__()
        first, width = features(spec, observation)
        if spec.shared:
            self.trunk = first
            self.actor = nn.Sequential(linear(spec, width, outputs, gain=spec.actor_gain))
            self.critic = nn.Sequential(linear(spec, width, 1, gain=spec.critic_gain))
        else:
            self.trunk = nn.Sequential()
            self.actor = nn.Sequential(*first, linear(spec, width, outputs, gain=spec.actor_gain))
            own, width = features(critic or spec, observation)
            self.critic = nn.Sequential(*own, linear(spec, width, 1, gain=spec.critic_gain))
        self.log_std = None if discrete else nn.Parameter(torch.full((outputs,), spec.log_std_init))

    def forward(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """Policy output and value of each observation."""
        features = self.trunk(obs)
        return self.actor(features), self.critic(features).squeeze(-1)

    def value(self, obs: Tensor) -> Tensor:
        """Value of each observation."""
        return self.critic(self.trunk(obs)).squeeze(-1)

    def policy_and_value(self) -> PolicyAndValue:
        """Policy output and value of the observations of one environment step, through torch."""
        device = next(self.parameters()).device
        trunk, actor, critic = (nn.Sequential(*part) for part in (self.trunk, self.actor, self.critic))

        def forward(obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            with torch.inference_mode():
                features = trunk(torch.from_numpy(obs).to(device))
                # One tensor, so that a device is waited for only once.
                both = torch.cat((actor(features), critic(features)), -1).cpu().numpy()
            return both[:, :-1], both[:, -1]

        return forward

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
    """Layers from observations of this shape (a number: vectors) to the features of a head, and how many there are.

    The settings class of a network names a function that builds them, in its `LAYERS`: the function takes the settings
    and the shape of an observation, and returns a module (observations [B, *shape] in, features [B, F] out) and F. Each
    call makes new layers. Weights may be drawn from torch's random numbers; only parameters are kept in checkpoints.
    """
    shape = (observation,) if isinstance(observation, int) else observation
    layers, width = spec.layers_of("torch")(spec, shape)
    return layers if isinstance(layers, nn.Sequential) else nn.Sequential(layers), width


def mlp_layers(spec: Net, shape: tuple[int, ...]) -> tuple[nn.Sequential, int]:
    """The hidden layers of a perceptron, which reads any observation as one vector."""
    width = math.prod(shape)
    layers = nn.Sequential(*([Flat()] if len(shape) > 1 else []), *hidden_layers(spec, width))
    return layers, (spec.hidden or (width,))[-1]


def cnn_layers(spec: Net, shape: tuple[int, ...]) -> tuple[nn.Sequential, int]:
    """Convolutions and hidden layers, which read images."""
    eyes, width = image_layers(spec, shape)
    return ImageTrunk(list(eyes), list(hidden_layers(spec, width))), (spec.hidden or (width,))[-1]


def hidden_layers(spec: Net, inputs: int) -> nn.Sequential:
    """Linear and activation for each hidden width, with a norm between them where the spec wants one."""
    layers: list[nn.Module] = []
    for before, after in pairwise((inputs, *spec.hidden)):
        norm = [nn.LayerNorm(after)] if spec.layer_norm else []
        layers += [linear(spec, before, after, gain=HIDDEN_GAIN), *norm, ACTIVATIONS[spec.activation]()]
    return nn.Sequential(*layers)


class QuantileNet(nn.Module):
    """Of each action's return, the values at the middles of `quantiles` equally probable parts; their mean is Q.

    With duelling heads each quantile is split by itself, as `QNet` splits its values.
    """

    def __init__(self, spec: Net, observation: Shape, actions: int, quantiles: int) -> None:
        super().__init__()
        self.trunk, width = features(spec, observation)
        self.advantage = linear(spec, width, actions * quantiles, gain=spec.critic_gain)
        self.state_value = linear(spec, width, quantiles, gain=spec.critic_gain) if spec.duelling else None
        self.actions, self.count = actions, quantiles

    def quantiles(self, obs: Tensor) -> Tensor:
        """Every action's quantiles [B, A, N] in each observation."""
        features = self.trunk(obs)
        advantage = self.advantage(features).unflatten(-1, (self.actions, self.count))
        if self.state_value is None:
            return advantage
        return self.state_value(features).unsqueeze(-2) + advantage - advantage.mean(-2, keepdim=True)

    def forward(self, obs: Tensor) -> Tensor:
        """Value of every action in each observation."""
        return self.quantiles(obs).mean(-1)

    def greedy_layers(self) -> nn.Sequential:
        """Layers whose outputs `mean_of_quantiles` turns into values; a state value would not change which is best."""
        return nn.Sequential(*self.trunk, self.advantage)


def mean_of_quantiles(forward: Callable[[np.ndarray], np.ndarray], actions: int) -> Callable[[np.ndarray], np.ndarray]:
    """Action values from a forward pass that gives all quantiles of all actions in a row."""
    return lambda obs: forward(obs).reshape(len(obs), actions, -1).mean(-1)
