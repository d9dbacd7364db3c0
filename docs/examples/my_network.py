"""A residual network for vectors: an input layer, then blocks whose output is added to their input.

    operant train my_spec.yaml -s agent.net.type=my_network:ResidualNet

A network is a settings class and, for each engine, a function that builds the layers before the heads. Operant puts
the heads on them that the algorithm needs: policy and value, action values, or a policy beside critics.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from operant.spec.fields import fixed
from operant.spec.settings.nets import Net


class Block(nn.Module):
    """x + W2 relu(W1 norm(x)); W2 starts at zero, so that a block starts as the identity."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        nn.init.zeros_(self.second.weight)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.second(torch.relu(self.first(self.norm(x))))


def residual_layers(settings: ResidualNet, shape: tuple[int, ...]) -> tuple[nn.Module, int]:
    """Layers from observations [B, *shape] to features [B, F], and F."""
    first = nn.Linear(math.prod(shape), settings.width)
    blocks = (Block(settings.width) for _ in range(settings.blocks))
    return nn.Sequential(nn.Flatten(), first, *blocks, nn.ReLU()), settings.width


class ResidualNet(Net):
    """Residual blocks on vectors."""

    LAYERS = {"torch": residual_layers}

    width: int = fixed("the weights have this shape", default=64, ge=1, le=65_536, description="Units of each layer.")
    blocks: int = fixed("the weights have this shape", default=2, ge=0, le=1000, description="Residual blocks.")
