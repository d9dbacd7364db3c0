"""Networks that learn the whole distribution of returns, as quantiles (Dabney et al., 2018)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import Tensor, nn

from operant.engines.torch.layers import linear
from operant.engines.torch.nets import Shape, features
from operant.spec.settings.nets import Net


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
