"""Schedulers step with their optimizer exactly as torch's own do."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

from operant.engines.torch.schedules import LearningRates
from operant.spec.settings.optimizers import OptimizerSpec
from operant.spec.settings.schedulers import SCHEDULERS

EXAMPLES = [
    {"name": "CosineAnnealingLR", "T_max": 5, "eta_min": 1e-4},
    {"name": "CosineAnnealingWarmRestarts", "T_0": 3, "T_mult": 2},
    {"name": "LinearLR", "start_factor": 0.5, "end_factor": 0.1, "total_iters": 6},
    {"name": "ConstantLR", "factor": 0.25, "total_iters": 4},
    {"name": "PolynomialLR", "total_iters": 9, "power": 2.0},
    {"name": "ExponentialLR", "gamma": 0.9},
    {"name": "StepLR", "step_size": 3, "gamma": 0.5},
    {"name": "MultiStepLR", "milestones": (2, 8), "gamma": 0.1},
    {"name": "OneCycleLR", "total_steps": 10, "pct_start": 0.4, "three_phase": True},
    {"name": "CyclicLR", "base_lr": 1e-3, "max_lr": 1e-2, "step_size_up": 2, "mode": "exp_range", "gamma": 0.9},
]


def optimizer():
    groups = [{"params": [nn.Parameter(torch.ones(2))], "lr": lr} for lr in (1e-2, 4e-2)]
    return torch.optim.SGD(groups)


def test_every_scheduler_has_an_example():
    assert [each["name"] for each in EXAMPLES] == list(SCHEDULERS)


@pytest.mark.parametrize("settings", EXAMPLES, ids=lambda each: each["name"])
def test_the_rates_are_those_of_torch(settings):
    spec = OptimizerSpec.model_validate({"lr": 1e-2, "scheduler": settings})
    ours, theirs = optimizer(), optimizer()
    rates = LearningRates(spec, ours, (1e-2, 4e-2))
    own = {key: value for key, value in settings.items() if key != "name"}
    if "Cyc" in settings["name"]:
        own["cycle_momentum"] = False
    if settings["name"] == "OneCycleLR":
        own["max_lr"] = [1e-2, 4e-2]
    reference = getattr(lr_scheduler, settings["name"])(theirs, **own)
    for _ in range(9):
        ours.step()
        theirs.step()
        rates.advance()
        reference.step()
        assert [group["lr"] for group in ours.param_groups] == reference.get_last_lr()
        assert rates.anneal(0.9) == ours.param_groups[0]["lr"]


def test_a_cycle_that_is_over_stays_where_it_ended():
    spec = OptimizerSpec.model_validate({"scheduler": {"name": "OneCycleLR", "total_steps": 4}})
    steps = optimizer()
    rates = LearningRates(spec, steps, (1e-2, 4e-2))
    for _ in range(9):
        steps.step()
        rates.advance()
    assert rates.anneal(1.0) == pytest.approx(1e-2 / 25 / 1e4)
