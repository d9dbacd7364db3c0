"""One optimizer step as few tensor operations as possible.

A small network's update is bound by the overhead of each operation, not by arithmetic. So the
parameters become views of one flat tensor, and so do their gradients: clearing, clipping and
stepping then cost one operation each instead of one per parameter.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from operant.engines.torch.schedules import LearningRates
from operant.spec.settings.optimizers import OptimizerSpec

CLASSES: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
    "nadam": torch.optim.NAdam,
    "radam": torch.optim.RAdam,
    "adamax": torch.optim.Adamax,
    "adagrad": torch.optim.Adagrad,
    "adadelta": torch.optim.Adadelta,
    "asgd": torch.optim.ASGD,
    "rprop": torch.optim.Rprop,
}
FUSED = ("adam", "adamw", "sgd")  # one kernel for a whole step
RATES = "rates/"
UNTRACED = ("add_param_group", "state_dict", "load_state_dict")  # what torch wraps to keep its compiler from tracing it


class FlatOptimizer:
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
        _become_views([p for group in groups for p in group], self._flat, self._grad)
        grads = self._grad.split(sizes)
        self._clipped = grads if spec.clip_each else (self._grad,)
        wholes = [nn.Parameter(values) for values in self._flat.split(sizes)]
        for whole, grad in zip(wholes, grads, strict=True):
            whole.grad = grad
        self._torch = _torch_optimizer(
            spec, [{"params": [whole], "lr": lr} for whole, lr in zip(wholes, rates, strict=True)]
        )
        self._rates = LearningRates(spec, self._torch, rates)

    def anneal(self, done: float) -> float:
        """Set the learning rates for the fraction `done` of the budget; returns the first of them."""
        return self._rates.anneal(done)

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
        self._rates.advance()
        return norm

    def state(self) -> dict[str, np.ndarray]:
        """The optimizer's memory: for each group, its moments and step count; and where its scheduler is."""
        found = self._torch.state_dict()["state"]
        moments = {
            f"{i}/{key}": torch.as_tensor(value).cpu().numpy()
            for i, slots in found.items()
            for key, value in slots.items()
        }
        return moments | {f"{RATES}{key}": value for key, value in self._rates.state().items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take back what `state` gave."""
        slots: dict[int, dict[str, Tensor]] = {}
        rates = {name.removeprefix(RATES): value for name, value in state.items() if name.startswith(RATES)}
        for name, value in state.items():
            index, _, key = name.partition("/")
            if not name.startswith(RATES):
                slots.setdefault(int(index), {})[key] = torch.from_numpy(np.array(value))
        self._torch.load_state_dict({"state": slots, "param_groups": self._torch.state_dict()["param_groups"]})
        self._rates.restore(rates)


def _become_views(parameters: list[nn.Parameter], flat: Tensor, grad: Tensor) -> None:
    """Move each parameter and its gradient into its part of the flat tensors, its elements in the order they had.

    The weights of a convolution may lie with their channels last; a plain view would undo that.
    """
    start = 0
    for parameter in parameters:
        form = (parameter.size(), parameter.stride(), start)
        start += parameter.numel()
        parameter.data = flat.as_strided(*form).copy_(parameter.detach())
        parameter.grad = grad.as_strided(*form)


def _torch_optimizer(spec: OptimizerSpec, groups: list[dict]) -> torch.optim.Optimizer:
    fused = {"fused": True} if spec.name in FUSED else {}
    return _eager(CLASSES[spec.name])(groups, **spec.arguments(), **fused)


def _eager(kind: Any) -> Callable[..., torch.optim.Optimizer]:
    """`kind` without the wrappers that serve `torch.compile`, which no step is under here.

    The first call of such a wrapper imports torch's compiler: more seconds than torch itself takes.
    """
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in UNTRACED}
    return type(kind.__name__, (kind,), {**methods, "step": torch.no_grad()(inspect.unwrap(kind.step))})
