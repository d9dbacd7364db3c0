"""Batch renormalization (Ioffe, 2017), and twin critics built with it.

Batch normalization learns with the statistics of a batch and evaluates with running ones, so the two
disagree. Renormalization corrects what it learns with towards the running statistics, within
limits that begin at no correction and widen once those statistics can be trusted.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from operant.engines.torch.networks.twin_critics import Critics, TwinCritic
from operant.spec.settings.nets import Net

EPSILON = 1e-3  # of variances: features that hardly vary are not blown up
WIDEST_SCALE, WIDEST_SHIFT = 3.0, 5.0  # limits of r and d in the end
SCALE_UNTIL, SHIFT_UNTIL = 8.0, 5.0  # when they are reached, in lengths of the warm-up


def limits(step: int, warm_up: int) -> tuple[float, float]:
    """The limits r_max and d_max at a gradient step: 1 and 0 through the warm-up, then lines to their widest."""
    past = max(0.0, step / warm_up - 1)
    scale = 1 + (WIDEST_SCALE - 1) * min(1.0, past / (SCALE_UNTIL - 1))
    return scale, WIDEST_SHIFT * min(1.0, past / (SHIFT_UNTIL - 1))


class BatchRenorm(nn.Module):
    """Features [2, B, F] of two critics, each normalized over its batch by itself.

    With batch mean m and deviation s, running mean M and deviation S, it gives
    ((x - m) / s r + d) scale + shift, where r = s / S and d = (m - M) / S are limited and constant
    to the gradient. Where neither limit is met, that is what the running statistics alone would give.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, features: int, momentum: float) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2, 1, features))
        self.shift = nn.Parameter(torch.zeros(2, 1, features))
        self.register_buffer("mean", torch.zeros(2, 1, features))
        self.register_buffer("deviation", torch.ones(2, 1, features))
        self._momentum = momentum

    def forward(self, x: Tensor, scale_limit: float, shift_limit: float) -> Tensor:
        """Normalised by the batch, corrected within the limits; the running statistics follow the batch."""
        mean = x.mean(1, keepdim=True)
        centred = x - mean
        deviation = (centred.square().mean(1, keepdim=True) + EPSILON).sqrt()
        with torch.no_grad():
            r = (deviation / self.deviation).clamp(1 / scale_limit, scale_limit)
            d = ((mean - self.mean) / self.deviation).clamp(-shift_limit, shift_limit)
            self.mean.lerp_(mean, self._momentum)
            self.deviation.lerp_(deviation, self._momentum)
        return torch.addcmul(self.shift + d * self.scale, centred, self.scale * (r / deviation))

    def forward_frozen(self, x: Tensor, critics: int) -> Tensor:
        """Normalised by the running statistics, as a fixed function."""
        scale = self.scale.detach()[:critics] / self.deviation[:critics]
        return torch.addcmul(self.shift.detach()[:critics] - self.mean[:critics] * scale, x, scale)


class RenormCritic(Critics):
    """Twin critics that renormalize what enters each of their layers.

    `forward` is the pass that learns: it uses and moves the statistics. `forward_frozen` uses the running ones
    and changes nothing.
    """

    steps: Tensor

    def __init__(self, spec: Net, inputs: int, outputs: int, momentum: float, warm_up: int) -> None:
        super().__init__()
        self.twin = TwinCritic(spec.model_copy(update={"layer_norm": False}), inputs, outputs)
        self.norms = nn.ModuleList(BatchRenorm(width, momentum) for width in (inputs, *spec.hidden))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self._warm_up = warm_up

    def forward(self, x: Tensor) -> Tensor:
        widest = limits(int(self.steps), self._warm_up)
        self.steps += 1
        x = x.expand(2, *x.shape)
        for k, (norm, weight, bias) in enumerate(self._layers()):
            x = torch.baddbmm(bias, norm(x if k == 0 else self.twin.activation(x), *widest), weight)
        return x

    def forward_frozen(self, x: Tensor, critics: int = 2) -> Tensor:
        x = x.expand(critics, *x.shape)
        for k, (norm, weight, bias) in enumerate(self._layers()):
            normed = norm.forward_frozen(x if k == 0 else self.twin.activation(x), critics)
            x = torch.baddbmm(bias.detach()[:critics], normed, weight.detach()[:critics])
        return x

    def _layers(self) -> Sequence[tuple[BatchRenorm, Tensor, Tensor]]:
        return list(zip(self.norms, self.twin.weights, self.twin.biases, strict=True))  # pyright: ignore[reportReturnType]
