"""One optimiser step as few tensor operations as possible.

A small network's update is bound by the overhead of each operation, not by arithmetic. So the
parameters become views of one flat tensor, and so do their gradients: clearing, clipping and
stepping then cost one operation each instead of one per parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from operant.spec.nets import OptimizerSpec


class FlatOptimiser:
    """Steps groups of parameters, each at its own learning rate, with the gradient norm limited.

    The limit holds for all parameters together, or with `clip_each` for every group by itself:
    then a large value error of the critic cannot shrink the policy's step. `combine` is called with
    every gradient, before its norm is taken: where several processes learn, it averages.
    """

    def __init__(self, spec: OptimizerSpec, groups: Sequence[list[nn.Parameter]], rates: Sequence[float]) -> None:
        sizes = [sum(p.numel() for p in group) for group in groups]
        device = groups[0][0].device
        self._flat = torch.empty(sum(sizes), device=device)
        self._grad = torch.zeros_like(self._flat)
        self._clip = spec.clip_grad_norm
        self.combine: Callable[[Tensor], object] = lambda grad: None
        self._rates = list(rates)
        self._end_fraction = spec.lr_end_fraction
        _become_views([p for group in groups for p in group], self._flat, self._grad)
        grads = self._grad.split(sizes)
        self._clipped = grads if spec.clip_each else (self._grad,)
        wholes = [nn.Parameter(values) for values in self._flat.split(sizes)]
        for whole, grad in zip(wholes, grads, strict=True):
            whole.grad = grad
        self._torch = _torch_optimiser(
            spec, [{"params": [whole], "lr": lr} for whole, lr in zip(wholes, rates, strict=True)]
        )

    def anneal(self, done: float) -> float:
        """Set the learning rates for the fraction `done` of the budget; returns the first of them."""
        left = 1.0 + (self._end_fraction - 1.0) * min(done, 1.0)
        for group, rate in zip(self._torch.param_groups, self._rates, strict=True):
            group["lr"] = rate * left
        return self._rates[0] * left

    def step(self, loss: Tensor) -> Tensor:
        """Descend `loss` once; returns the whole gradient's norm before clipping."""
        self._grad.zero_()
        loss.backward()
        self.combine(self._grad)
        norm = torch.linalg.vector_norm(self._grad)
        if self._clip is not None:
            for part in self._clipped:
                size = norm if part is self._grad else torch.linalg.vector_norm(part)
                part.mul_((self._clip / (size + 1e-6)).clamp(max=1.0))
        self._torch.step()
        return norm

    def state(self) -> dict[str, np.ndarray]:
        """The optimiser's memory: for each group, its moments and step count."""
        found = self._torch.state_dict()["state"]
        return {
            f"{i}/{key}": torch.as_tensor(value).cpu().numpy()
            for i, slots in found.items()
            for key, value in slots.items()
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take back what `state` gave."""
        slots: dict[int, dict[str, Tensor]] = {}
        for name, value in state.items():
            index, _, key = name.partition("/")
            slots.setdefault(int(index), {})[key] = torch.from_numpy(np.array(value))
        self._torch.load_state_dict({"state": slots, "param_groups": self._torch.state_dict()["param_groups"]})


def _become_views(parameters: list[nn.Parameter], flat: Tensor, grad: Tensor) -> None:
    """Move each parameter and its gradient into its part of the flat tensors."""
    start = 0
    for parameter in parameters:
        end = start + parameter.numel()
        flat[start:end] = parameter.detach().reshape(-1)
        parameter.data = flat[start:end].view_as(parameter)
        parameter.grad = grad[start:end].view_as(parameter)
        start = end


def _torch_optimiser(spec: OptimizerSpec, groups: list[dict]) -> torch.optim.Optimizer:
    if spec.name == "adam":
        return torch.optim.Adam(groups, eps=spec.eps, weight_decay=spec.weight_decay, fused=True)
    if spec.name == "adamw":
        return torch.optim.AdamW(groups, eps=spec.eps, weight_decay=spec.weight_decay, fused=True)
    if spec.name == "rmsprop":
        return torch.optim.RMSprop(groups, eps=spec.eps, weight_decay=spec.weight_decay, alpha=0.99)
    return torch.optim.SGD(groups, weight_decay=spec.weight_decay, fused=True)
