"""The flat optimizer does what torch's own optimizers do parameter by parameter."""

from __future__ import annotations

import copy
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from operant.engines.torch.optimizer import CLASSES, FlatOptimizer
from operant.spec.settings.optimizers import TAKES, OptimizerSpec
from tests.unit.engines.torch.test_schedules import EXAMPLES


def make_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))


def loss_of(net, k):
    torch.manual_seed(k)
    return (net(torch.randn(16, 3)) * 10).square().mean()


SETTINGS = {
    "adamw": {"weight_decay": 0.1},
    "adam": {"betas": (0.5, 0.9), "amsgrad": True},
    "rmsprop": {"alpha": 0.9, "momentum": 0.5, "centered": True},
    "sgd": {"momentum": 0.9, "nesterov": True},
}


@pytest.mark.parametrize("name", TAKES)
@pytest.mark.parametrize("settings", ["default", "set"])
def test_matches_torch(name, settings):
    flat_net, plain_net = make_net(), make_net()
    own = SETTINGS.get(name, {}) if settings == "set" else {}
    spec = OptimizerSpec(name=name, lr=1e-2, clip_grad_norm=0.5, **own)
    flat = FlatOptimizer(spec, [list(flat_net.parameters())], [spec.lr])
    given = {"eps": 1e-5} if "eps" in TAKES[name] else {}
    given |= {"weight_decay": 0.0} if name == "adamw" else {}
    plain = CLASSES[name](plain_net.parameters(), **({"lr": 1e-2} | given | own))
    for k in range(20):
        flat.step(loss_of(flat_net, k))
        plain.zero_grad()
        loss_of(plain_net, k).backward()
        nn.utils.clip_grad_norm_(plain_net.parameters(), 0.5)
        plain.step()
    for a, b in zip(flat_net.parameters(), plain_net.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


def test_groups_have_their_own_rates_and_anneal_together():
    net = make_net()
    spec = OptimizerSpec(lr=1e-2, lr_end_fraction=0.5)
    flat = FlatOptimizer(spec, [list(net[0].parameters()), list(net[2].parameters())], [1e-2, 4e-2])
    assert flat.anneal(0.0) == 1e-2
    assert flat.anneal(0.5) == pytest.approx(0.75e-2)
    assert flat.anneal(2.0) == pytest.approx(0.5e-2)


def test_clipping_each_group_shields_the_small_gradient_from_the_large():
    def change(each):
        small, large = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.zeros(4))
        spec = OptimizerSpec(name="sgd", clip_grad_norm=0.1, clip_each=each)
        FlatOptimizer(spec, [[small], [large]], [1.0, 1.0]).step(small.sum() * 1e-2 + large.sum() * 1e3)
        return small.abs().max().item()

    assert change(each=True) == pytest.approx(1e-2, rel=1e-3)
    assert change(each=False) < 1e-5


@pytest.mark.parametrize("name", TAKES)
def test_state_continues_exactly(name):
    assert_continues(OptimizerSpec(name=name, **SETTINGS.get(name, {})))


@pytest.mark.parametrize("scheduler", EXAMPLES, ids=lambda each: each["name"])
def test_a_scheduler_continues_exactly(scheduler):
    assert_continues(OptimizerSpec.model_validate({"name": "sgd", "scheduler": scheduler}))


def assert_continues(spec):
    net = make_net()
    rates = [spec.lr, 2 * spec.lr]
    flat = FlatOptimizer(spec, groups_of(net), rates)
    for k in range(7):
        flat.step(loss_of(net, k))
    twin = copy.deepcopy(net)
    resumed = FlatOptimizer(spec, groups_of(twin), rates)
    resumed.restore(flat.state())
    for k in range(7, 14):
        assert flat.anneal(0.5) == resumed.anneal(0.5)
        flat.step(loss_of(net, k))
        resumed.step(loss_of(twin, k))
    for a, b in zip(net.parameters(), twin.parameters(), strict=True):
        assert torch.equal(a, b)
    assert all(np.array_equal(value, resumed.state()[key]) for key, value in flat.state().items())


def groups_of(net):
    return [list(net[0].parameters()), list(net[2].parameters())]


def test_learning_does_not_import_the_compiler():
    code = """
import sys, torch
from operant.engines.torch.optimizer import FlatOptimizer
from operant.spec.settings.optimizers import OptimizerSpec

net = torch.nn.Linear(3, 2)
optimizer = FlatOptimizer(OptimizerSpec(), [list(net.parameters())], [1e-3])
optimizer.step(net(torch.ones(3)).sum())
optimizer.restore(optimizer.state())
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
