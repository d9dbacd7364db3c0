"""The flat optimiser does what torch's own optimisers do parameter by parameter."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from operant.engines.deep.optimise import FlatOptimiser
from operant.spec.nets import OptimizerSpec


def make_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))


def loss_of(net, k):
    torch.manual_seed(k)
    return (net(torch.randn(16, 3)) * 10).square().mean()


REFERENCES = {
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2, eps=1e-5),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2, eps=1e-5, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-2, eps=1e-5),
    "sgd": lambda p: torch.optim.SGD(p, lr=1e-2),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_matches_torch(name):
    flat_net, plain_net = make_net(), make_net()
    spec = OptimizerSpec(name=name, lr=1e-2, weight_decay=0.1 if name == "adamw" else 0.0, clip_grad_norm=0.5)
    flat = FlatOptimiser(spec, [list(flat_net.parameters())], [spec.lr])
    plain = REFERENCES[name](plain_net.parameters())
    for k in range(20):
        flat.step(loss_of(flat_net, k))
        plain.zero_grad()
        loss_of(plain_net, k).backward()
        nn.utils.clip_grad_norm_(plain_net.parameters(), 0.5)
        plain.step()
    for a, b in zip(flat_net.parameters(), plain_net.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_groups_have_their_own_rates_and_anneal_together():
    net = make_net()
    spec = OptimizerSpec(lr=1e-2, lr_end_fraction=0.5)
    flat = FlatOptimiser(spec, [list(net[0].parameters()), list(net[2].parameters())], [1e-2, 4e-2])
    assert flat.anneal(0.0) == 1e-2
    assert flat.anneal(0.5) == pytest.approx(0.75e-2)
    assert flat.anneal(2.0) == pytest.approx(0.5e-2)


def test_clipping_each_group_shields_the_small_gradient_from_the_large():
    def change(each):
        small, large = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.zeros(4))
        spec = OptimizerSpec(name="sgd", clip_grad_norm=0.1, clip_each=each)
        FlatOptimiser(spec, [[small], [large]], [1.0, 1.0]).step(small.sum() * 1e-2 + large.sum() * 1e3)
        return small.abs().max().item()

    assert change(each=True) == pytest.approx(1e-2, rel=1e-3)
    assert change(each=False) < 1e-5


@pytest.mark.parametrize("name", REFERENCES)
def test_state_continues_exactly(name):
    spec = OptimizerSpec(name=name)
    net = make_net()
    flat = FlatOptimiser(spec, [list(net.parameters())], [spec.lr])
    for k in range(3):
        flat.step(loss_of(net, k))
    twin = copy.deepcopy(net)
    resumed = FlatOptimiser(spec, [list(twin.parameters())], [spec.lr])
    resumed.restore(flat.state())
    for k in range(3, 6):
        flat.step(loss_of(net, k))
        resumed.step(loss_of(twin, k))
    for a, b in zip(net.parameters(), twin.parameters(), strict=True):
        assert torch.equal(a, b)
