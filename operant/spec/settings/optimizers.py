"""Settings of optimisers: those of torch that need no more of a parameter than its gradient.

The set is closed because this package may not import torch; a test holds names, settings and defaults against torch's
signatures. Adafactor and Muon treat matrices as such and here a group of parameters is one flat vector; LBFGS steps
by evaluating its loss again; SparseAdam is for sparse gradients.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from operant.spec.fields import Closed, fixed, free
from operant.spec.registry import OneOf
from operant.spec.settings.schedulers import SCHEDULERS, SchedulerSpec

Rate = Annotated[float, Field(ge=0, lt=1)]
Factor = Annotated[float, Field(gt=0, le=1000)]

# For each optimiser the settings that it reads, beside the learning rates and the limit of gradients.
TAKES: dict[str, tuple[str, ...]] = {
    "adam": ("eps", "weight_decay", "betas", "amsgrad"),
    "adamw": ("eps", "weight_decay", "betas", "amsgrad"),
    "rmsprop": ("eps", "weight_decay", "alpha", "momentum", "centered"),
    "sgd": ("weight_decay", "momentum", "dampening", "nesterov"),
    "nadam": ("eps", "weight_decay", "betas", "momentum_decay", "decoupled_weight_decay"),
    "radam": ("eps", "weight_decay", "betas", "decoupled_weight_decay"),
    "adamax": ("eps", "weight_decay", "betas"),
    "adagrad": ("eps", "weight_decay", "lr_decay", "initial_accumulator_value"),
    "adadelta": ("eps", "weight_decay", "rho"),
    "asgd": ("weight_decay", "alpha", "lambd", "t0"),
    "rprop": ("etas", "step_sizes"),
}
Name = Literal[
    "adam", "adamw", "rmsprop", "sgd", "nadam", "radam", "adamax", "adagrad", "adadelta", "asgd", "rprop"
]  # fmt: skip
Scheduler = Annotated[SchedulerSpec, OneOf(SCHEDULERS)]


class OptimizerSpec(Closed):
    """How gradients become steps."""

    name: Name = fixed(
        "what an optimiser remembers is its own",
        default="adam",
        description="Optimiser, by torch's name in lower case.",
    )
    lr: float = free(default=3e-4, gt=0, le=10, description="Learning rate at the start of the run.")
    critic_lr: float | None = free(
        default=None, gt=0, le=10, description="Learning rate of a separate critic; the same as `lr` when absent."
    )
    lr_end_fraction: float = free(
        default=1.0, ge=0, le=1, description="Both learning rates fall linearly to this fraction over `env.max_frame`."
    )
    scheduler: Scheduler | None = fixed(
        "where the scheduler is, and the rates that it has set, are kept",
        default=None,
        description="Scheduler of torch, stepped after every update, instead of `lr_end_fraction`.",
    )
    eps: float = free(default=1e-5, gt=0, lt=1, description="Epsilon of all but sgd, asgd and rprop.")
    weight_decay: float = free(default=0.0, ge=0, lt=1, description="Weight decay.")
    clip_grad_norm: float | None = free(
        default=0.5, gt=0, le=1e6, description="Largest gradient norm; null for no limit."
    )
    clip_each: bool = free(
        default=False, description="Limit the norms of actor and critic apart, not that of both together."
    )
    betas: tuple[Rate, ...] = free(
        default=(0.9, 0.999), min_length=2, max_length=2, description="Decay of the two moments of the Adam family."
    )
    amsgrad: bool = fixed(
        "the largest moments are kept, or not",
        default=False,
        description="Adam and AdamW divide by the largest second moment so far.",
    )
    alpha: float | None = free(
        default=None, ge=0, le=1, description="RMSprop's decay of squares (0.99), or ASGD's power (0.75)."
    )
    momentum: float = free(default=0.0, ge=0, lt=1, description="Momentum of sgd and rmsprop.")
    dampening: float = free(default=0.0, ge=0, le=1, description="Dampening of sgd's momentum.")
    nesterov: bool = free(default=False, description="Sgd looks ahead along its momentum.")
    centered: bool = fixed(
        "mean gradients are kept, or not", default=False, description="RMSprop divides by the deviation of gradients."
    )
    momentum_decay: float = free(default=4e-3, ge=0, lt=1, description="Decay of nadam's momentum.")
    decoupled_weight_decay: bool = free(default=False, description="Nadam and radam decay weights as AdamW does.")
    rho: float = free(default=0.9, ge=0, le=1, description="Adadelta's decay of squares.")
    lr_decay: float = free(default=0.0, ge=0, le=1, description="Decay of adagrad's learning rate at each update.")
    initial_accumulator_value: float = fixed(
        "it says only how a run begins", default=0.0, ge=0, le=1e6, description="Where adagrad's sum of squares starts."
    )
    lambd: float = free(default=1e-4, ge=0, le=1, description="Decay term of asgd.")
    t0: float = free(default=1e6, ge=0, le=1e12, description="Update at which asgd begins to average.")
    etas: tuple[Factor, ...] = free(
        default=(0.5, 1.2), min_length=2, max_length=2, description="Factors by which rprop shortens and lengthens."
    )
    step_sizes: tuple[Factor, ...] = free(
        default=(1e-6, 50.0), min_length=2, max_length=2, description="Shortest and longest step of rprop."
    )

    def arguments(self) -> dict[str, Any]:
        """What torch's class of this name takes, less the parameters and their learning rates."""
        given = {key: getattr(self, key) for key in TAKES[self.name]}
        return {key: value for key, value in given.items() if value is not None}

    def fixed_in_fork(self) -> Mapping[str, str]:
        if self.scheduler is not None:
            return dict.fromkeys(("lr", "critic_lr"), "the rates that the scheduler has set are kept")
        if self.name == "rprop":
            return dict.fromkeys(("lr", "critic_lr"), "rprop keeps the step sizes that it has found")
        # Only what is not zero is remembered, so that from there on it may change.
        return {"momentum": "without momentum none was kept"} if self.momentum == 0 else {}

    def inert(self) -> Mapping[str, str]:
        """The settings that nothing would read, each with the reason."""
        takes = TAKES[self.name]
        why = f"{self.name} takes {', '.join(takes)}"
        reasons = {key: why for each in TAKES.values() for key in each if key not in takes}
        if self.clip_grad_norm is None:
            reasons["clip_each"] = "clip_grad_norm is null"
        if self.name == "rprop":
            reasons |= dict.fromkeys(("lr_end_fraction", "scheduler"), "rprop finds its step sizes itself")
        elif self.scheduler is not None:
            reasons["lr_end_fraction"] = "the scheduler sets the learning rate"
            if self.scheduler.SETS_RATES:
                reasons |= dict.fromkeys(("lr", "critic_lr"), f"{self.scheduler.name} sets the learning rates itself")
        return reasons
