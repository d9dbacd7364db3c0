"""A network of my own: layers from observations to features, on which Operant puts the heads.

    operant check --contract my_net:MyNet    does a run with it keep what Operant promises?
    operant train my_net.yaml                trains PPO with it
    operant help net my_net:MyNet            its settings

In a spec it is named by its module and class (agent.net.type: my_net:MyNet), beside its settings. Which heads there
are is up to the algorithm: policy and value, action values, or a policy beside critics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from operant.spec.fields import fixed
from operant.spec.settings.nets import Net


class Block(nn.Module):
    """x + W2 gelu(W1 norm(x)); W2 starts at zero, so that a block starts as the identity."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        # Weights may be drawn from torch's random numbers: those are seeded before a network is built.
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        nn.init.zeros_(self.second.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Features [B, width] to features [B, width]."""
        return x + self.second(torch.nn.functional.gelu(self.first(self.norm(x))))


def build_layers(settings: MyNet, shape: tuple[int, ...]) -> tuple[nn.Module, int]:
    """New layers from observations [B, *shape] to features [B, F], and F.

    Checkpoints keep parameters only: what else a layer remembers (batch statistics) would be lost by a resume.
    """
    first = nn.Linear(math.prod(shape), settings.width)
    blocks = [Block(settings.width) for _ in range(settings.blocks)]
    return nn.Sequential(nn.Flatten(), first, *blocks, nn.ReLU()), settings.width


class MyNet(Net):
    """Residual blocks on vectors."""

    # For each engine, what builds the layers.
    LAYERS: ClassVar[Mapping[str, Any]] = {"torch": build_layers}

    # The keys that a spec may have under `agent.net`, with their limits; `optimizer` and others come from `Net`.
    # `fixed` says why a fork of a run may not change it; `free(...)` is for what it may.
    width: int = fixed("the weights have this shape", default=64, ge=1, le=65_536, description="Units of each layer.")
    blocks: int = fixed("the weights have this shape", default=2, ge=0, le=1000, description="Residual blocks.")
