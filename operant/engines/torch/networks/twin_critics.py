"""Two critics evaluated as one network, and the slow copies that they learn from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise, zip_longest

import torch
from torch import Tensor, nn
from torch.nn import functional

from operant.engines.torch.networks.heads import QNet
from operant.engines.torch.networks.layers import ACTIVATIONS, HIDDEN_GAIN, linear
from operant.spec.settings.nets import Net


class Critics(nn.Module, ABC):
    """Two critics, as SAC, CrossQ and TD3 ask them."""

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Both critics' outputs [2, B, K] for inputs [B, I], to learn from."""

    @abstractmethod
    def forward_frozen(self, x: Tensor, critics: int = 2) -> Tensor:
        """The same of the first `critics`, as fixed functions: gradients reach `x` but no weight."""


class TwinCritic(Critics):
    """A pair of perceptrons whose layers are stacked, so that each layer of both is one batched product.

    The two start from different weights and share nothing but their input; the smaller of their
    values is a cautious estimate (Fujimoto et al., 2018).
    """

    def __init__(self, spec: Net, inputs: int, outputs: int) -> None:
        super().__init__()
        widths = (inputs, *spec.hidden, outputs)
        gains = [HIDDEN_GAIN] * len(spec.hidden) + [spec.critic_gain]
        self.activation = ACTIVATIONS[spec.activation]()
        if isinstance(self.activation, nn.ReLU):
            # A layer's own output is nobody else's: no need for a second array of its size.
            self.activation.inplace = True
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for (before, after), gain in zip(pairwise(widths), gains, strict=True):
            pair = [linear(spec, before, after, gain) for _ in range(2)]
            self.weights.append(nn.Parameter(torch.stack([layer.weight.detach().T for layer in pair])))
            self.biases.append(nn.Parameter(torch.stack([layer.bias.detach() for layer in pair]).unsqueeze(1)))
        normed = spec.hidden if spec.layer_norm else ()
        self.scales = nn.ParameterList(nn.Parameter(torch.ones(2, 1, width)) for width in normed)
        self.shifts = nn.ParameterList(nn.Parameter(torch.zeros(2, 1, width)) for width in normed)

    def forward(self, x: Tensor) -> Tensor:
        return self._through(x, self._layers())

    def forward_frozen(self, x: Tensor, critics: int = 2) -> Tensor:
        return self._through(x, [[part.detach()[:critics] for part in layer] for layer in self._layers()])

    def _layers(self) -> list[list[Tensor]]:
        """Of each layer weight and bias, and of hidden ones also scale and shift, where the spec has them normed."""
        return [
            [part for part in layer if part is not None]
            for layer in zip_longest(self.weights, self.biases, self.scales, self.shifts)
        ]

    def _through(self, x: Tensor, layers: list[list[Tensor]]) -> Tensor:
        x = x.expand(len(layers[0][0]), *x.shape)
        *hidden, (last_weight, last_bias) = layers
        for weight, bias, *norm in hidden:
            x = torch.baddbmm(bias, x, weight)
            if norm:
                scale, shift = norm
                x = torch.addcmul(shift, functional.layer_norm(x, x.shape[-1:]), scale)
            x = self.activation(x)
        return torch.baddbmm(last_bias, x, last_weight)


class TwinImageCritic(Critics):
    """Two networks that read images and value every discrete action."""

    def __init__(self, spec: Net, observation: tuple[int, ...], outputs: int) -> None:
        super().__init__()
        self.pair = nn.ModuleList([QNet(spec, observation, outputs) for _ in range(2)])

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([critic(x) for critic in self.pair])

    @torch.no_grad()
    def forward_frozen(self, x: Tensor, critics: int = 2) -> Tensor:
        """As fixed numbers: no gradient is wanted of the weights, and images have none."""
        return torch.stack([critic(x) for critic in self.pair[:critics]])


@torch.no_grad()
def polyak_update(slow: nn.Module, quick: nn.Module, share: float) -> None:
    """Move every parameter of `slow` by `share` of the way to that of `quick`."""
    for old, new in zip(slow.parameters(), quick.parameters(), strict=True):
        old.lerp_(new, share)


def critic_net(net: Net, hidden: tuple[int, ...] | None) -> Net:
    """The form of the critics: that of the policy, with their own hidden layers where the settings name some."""
    return net if hidden is None else net.model_copy(update={"hidden": hidden})
