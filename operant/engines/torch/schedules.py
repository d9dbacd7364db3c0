"""Learning rates over a run: a straight line over the budget, or one of torch's schedulers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.optim import lr_scheduler

from operant.registry import load
from operant.spec.settings.optimizers import OptimizerSpec
from operant.spec.settings.schedulers import OneCycleLRSpec

COUNTERS = ("last_epoch", "_step_count", "T_cur", "T_i")  # all that moves in a scheduler, beside the rates


class LearningRates:
    """Sets the rates of an optimizer's groups, each in proportion to where it starts.

    A line is a function of the budget that is spent. A scheduler moves with the optimizer: one step
    of it per update, as torch means it.
    """

    def __init__(self, spec: OptimizerSpec, optimizer: torch.optim.Optimizer, rates: Sequence[float]) -> None:
        self._optimizer = optimizer
        self._rates = list(rates)
        self._end_fraction = spec.lr_end_fraction
        self._scheduler = _scheduler(spec, optimizer, self._rates)
        self._last_step = spec.scheduler.total_steps - 1 if isinstance(spec.scheduler, OneCycleLRSpec) else None

    def anneal(self, done: float) -> float:
        """Set the rates for the fraction `done` of the budget, unless a scheduler does; returns the first of them."""
        groups = self._optimizer.param_groups
        if self._scheduler is not None:
            return float(groups[0]["lr"])
        left = 1.0 + (self._end_fraction - 1.0) * min(done, 1.0)
        for group, rate in zip(groups, self._rates, strict=True):
            group["lr"] = rate * left
        return self._rates[0] * left

    def advance(self) -> None:
        """The optimizer has made a step; a cycle that is over stays where it ended."""
        if self._scheduler is not None and self._scheduler.last_epoch != self._last_step:
            self._scheduler.step()

    def state(self) -> dict[str, np.ndarray]:
        """Where the scheduler is; nothing for a line, which needs no memory."""
        if self._scheduler is None:
            return {}
        counts = [getattr(self._scheduler, name, 0) for name in COUNTERS]
        rates = [float(group["lr"]) for group in self._optimizer.param_groups]
        return {"counts": np.array(counts, np.int64), "rates": np.array(rates, np.float64)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take back what `state` gave."""
        if self._scheduler is None:
            return
        counts = zip(COUNTERS, state["counts"].tolist(), strict=True)
        rates = state["rates"].tolist()
        moved = {name: count for name, count in counts if hasattr(self._scheduler, name)}
        vars(self._scheduler).update(moved, _last_lr=rates)  # what its own `load_state_dict` does, less its constants
        for group, rate in zip(self._optimizer.param_groups, rates, strict=True):
            group["lr"] = rate


def _scheduler(
    spec: OptimizerSpec, optimizer: torch.optim.Optimizer, rates: list[float]
) -> lr_scheduler.LRScheduler | None:
    if spec.scheduler is None:
        return None
    peak = {"max_lr": rates} if isinstance(spec.scheduler, OneCycleLRSpec) else {}
    own = spec.scheduler.SCHEDULER
    kind = load(own, "agent.net.optimizer.scheduler.name") if isinstance(own, str) else own
    kind = kind or getattr(lr_scheduler, spec.scheduler.name)
    return kind(optimizer, **spec.scheduler.arguments(), **peak)
