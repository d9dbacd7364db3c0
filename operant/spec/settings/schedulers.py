"""Settings of torch's learning-rate schedulers.

They keep torch's names, settings and unit: one step of a scheduler is one step of its optimiser, an update. The set is
closed because this package may not import torch; a test holds it against torch's signatures.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from operant.spec.fields import Closed, fixed
from operant.spec.registry import PartRegistry

kept = partial(fixed, "where the scheduler is, and the rates that it has set, are kept")

Updates = Annotated[int, Field(ge=1, le=10**12)]


class SchedulerSpec(Closed):
    """The base of every scheduler's settings (abstract).

    `SETS_RATES` is true of a scheduler that takes its rates from its own settings and not from the optimiser's.
    `SCHEDULER` is the class that steps, a subclass of torch's `LRScheduler`, as `module:class` or as the class itself;
    by default that of torch which has its name. Of its state `last_epoch` and the rates are kept in checkpoints.
    """

    SCHEDULER: ClassVar[str | type | None] = None
    SETS_RATES: ClassVar[bool] = False
    FIXED: ClassVar[dict[str, Any]] = {}

    name: Any  # each scheduler narrows it to its own Literal

    def arguments(self) -> dict[str, Any]:
        """What torch's class of this name takes."""
        return {**self.model_dump(exclude={"name"}), **self.FIXED}


class CosineAnnealingLRSpec(SchedulerSpec):
    """Half a cosine wave from the learning rate to `eta_min`, and back, over and over (Loshchilov and Hutter, 2017)."""

    name: Literal["CosineAnnealingLR"] = kept(default="CosineAnnealingLR", description="Scheduler.")
    T_max: Updates = kept(description="Updates from the highest rate to the lowest.")
    eta_min: float = kept(default=0.0, ge=0, le=10, description="Lowest learning rate.")


class CosineAnnealingWarmRestartsSpec(SchedulerSpec):
    """Half a cosine wave down to `eta_min`, begun anew from the top each time (Loshchilov and Hutter, 2017)."""

    name: Literal["CosineAnnealingWarmRestarts"] = kept(default="CosineAnnealingWarmRestarts", description="Scheduler.")
    T_0: Updates = kept(description="Updates of the first wave.")
    T_mult: int = kept(default=1, ge=1, le=1000, description="Each wave is this many times as long as the one before.")
    eta_min: float = kept(default=0.0, ge=0, le=10, description="Lowest learning rate.")


class LinearLRSpec(SchedulerSpec):
    """A straight line between two fractions of the learning rate, which then stays."""

    name: Literal["LinearLR"] = kept(default="LinearLR", description="Scheduler.")
    start_factor: float = kept(default=1 / 3, gt=0, le=1, description="Fraction of the learning rate at the start.")
    end_factor: float = kept(default=1.0, ge=0, le=1, description="Fraction at the end.")
    total_iters: Updates = kept(default=5, description="Updates that the change takes.")


class ConstantLRSpec(SchedulerSpec):
    """A fraction of the learning rate for a while, then all of it."""

    name: Literal["ConstantLR"] = kept(default="ConstantLR", description="Scheduler.")
    factor: float = kept(default=1 / 3, ge=0, le=1, description="Fraction of the learning rate.")
    total_iters: Updates = kept(default=5, description="Updates before the whole learning rate is used.")


class PolynomialLRSpec(SchedulerSpec):
    """Down to zero as a power of the updates left."""

    name: Literal["PolynomialLR"] = kept(default="PolynomialLR", description="Scheduler.")
    total_iters: Updates = kept(default=5, description="Updates until the rate is zero.")
    power: float = kept(default=1.0, gt=0, le=100, description="Power; 1 is a straight line.")


class ExponentialLRSpec(SchedulerSpec):
    """A constant factor at every update."""

    name: Literal["ExponentialLR"] = kept(default="ExponentialLR", description="Scheduler.")
    gamma: float = kept(gt=0, le=1, description="Factor of the learning rate at each update.")


class StepLRSpec(SchedulerSpec):
    """A constant factor every so many updates."""

    name: Literal["StepLR"] = kept(default="StepLR", description="Scheduler.")
    step_size: Updates = kept(description="Updates between two changes.")
    gamma: float = kept(default=0.1, gt=0, le=1, description="Factor of the learning rate at each change.")


class MultiStepLRSpec(SchedulerSpec):
    """A constant factor at each of the listed updates."""

    name: Literal["MultiStepLR"] = kept(default="MultiStepLR", description="Scheduler.")
    milestones: tuple[Updates, ...] = kept(min_length=1, max_length=1000, description="Updates at which to change.")
    gamma: float = kept(default=0.1, gt=0, le=1, description="Factor of the learning rate at each change.")


class OneCycleLRSpec(SchedulerSpec):
    """Up to the optimiser's learning rate and down again, once (Smith and Topin, 2018)."""

    FIXED = {"cycle_momentum": False}  # noqa: RUF012 - a class constant, as its base declares

    name: Literal["OneCycleLR"] = kept(default="OneCycleLR", description="Scheduler.")
    total_steps: Annotated[int, Field(ge=2, le=10**12)] = kept(description="Updates of the whole cycle.")
    pct_start: float = kept(default=0.3, ge=0, le=1, description="Fraction of the cycle that goes up.")
    anneal_strategy: Literal["cos", "linear"] = kept(default="cos", description="Shape of both ways.")
    div_factor: float = kept(default=25.0, ge=1, le=1e12, description="The first rate is `lr` over this.")
    final_div_factor: float = kept(default=1e4, ge=1, le=1e12, description="The last rate is the first over this.")
    three_phase: bool = kept(default=False, description="Come down as fast as going up, then fall to the last rate.")


class CyclicLRSpec(SchedulerSpec):
    """Up and down between two learning rates (Smith, 2017)."""

    SETS_RATES = True
    FIXED = {"cycle_momentum": False}  # noqa: RUF012 - a class constant, as its base declares

    name: Literal["CyclicLR"] = kept(default="CyclicLR", description="Scheduler.")
    base_lr: float = kept(gt=0, le=10, description="Lowest learning rate.")
    max_lr: float = kept(gt=0, le=10, description="Highest learning rate.")
    step_size_up: Updates = kept(default=2000, description="Updates on the way up.")
    step_size_down: Updates | None = kept(default=None, description="Updates on the way down; null for as many.")
    mode: Literal["triangular", "triangular2", "exp_range"] = kept(
        default="triangular", description="Height of the cycles: the same, halved each time, or by `gamma`."
    )
    gamma: float = kept(default=1.0, gt=0, le=1, description="Factor of the height at each update, for `exp_range`.")


BUILTIN: dict[str, type[SchedulerSpec]] = {
    "CosineAnnealingLR": CosineAnnealingLRSpec,
    "CosineAnnealingWarmRestarts": CosineAnnealingWarmRestartsSpec,
    "LinearLR": LinearLRSpec,
    "ConstantLR": ConstantLRSpec,
    "PolynomialLR": PolynomialLRSpec,
    "ExponentialLR": ExponentialLRSpec,
    "StepLR": StepLRSpec,
    "MultiStepLR": MultiStepLRSpec,
    "OneCycleLR": OneCycleLRSpec,
    "CyclicLR": CyclicLRSpec,
}
SCHEDULERS = PartRegistry("agent.net.optimizer.scheduler.name", SchedulerSpec, BUILTIN)
