"""Quantile regression against float64 numpy, and against the quantiles of a known distribution."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from operant.engines.torch import losses
from operant.engines.torch.buffers.replay import Batch
from operant.engines.torch.dqn import Dqn
from operant.engines.torch.networks.heads import QuantileNet
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.nets import MlpSpec


def tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(array, np.float32))


def build(**algorithm: object) -> Dqn:
    settings = {"name": "dqn", "gamma": 0.9, "distributional": "qr", "quantiles": 5, **algorithm}
    agent = {"algorithm": settings, "net": {"hidden": [16], "duelling": True}, "memory": {"name": "prioritised"}}
    return Dqn(Spec.model_validate({"env": {"name": "CartPole-v1"}, "agent": agent}), Seeds(0), torch.device("cpu"))


def loss_by_hand(quantile: np.ndarray, target: np.ndarray) -> float:
    total = 0.0
    for i, theta in enumerate(quantile):
        tau = (2 * i + 1) / (2 * len(quantile))
        for sample in target:
            u = sample - theta
            huber = 0.5 * u**2 if abs(u) <= 1 else abs(u) - 0.5
            total += abs(tau - (u < 0)) * huber / len(target)
    return total


def test_quantile_huber_loss():
    rng = np.random.default_rng(0)
    quantile, target = rng.normal(size=(8, 5)) * 2, rng.normal(size=(8, 7)) * 2
    expected = [loss_by_hand(*rows) for rows in zip(quantile, target, strict=True)]
    np.testing.assert_allclose(
        losses.quantile_huber_loss(tensor(quantile), tensor(target)).numpy(), expected, rtol=1e-4
    )


def test_descent_finds_the_quantiles_of_a_distribution():
    samples = np.random.default_rng(1).exponential(50.0, (1, 2000))
    theta = torch.full((1, 4), 20.0, requires_grad=True)
    optimizer = torch.optim.Adam([theta], lr=1.0)
    for _ in range(600):
        optimizer.zero_grad()
        losses.quantile_huber_loss(theta, tensor(samples)).sum().backward()
        optimizer.step()
    expected = np.quantile(samples, [0.125, 0.375, 0.625, 0.875])
    np.testing.assert_allclose(theta.detach().numpy()[0], expected, rtol=0.05)


@pytest.mark.parametrize("duelling", [False, True])
def test_values_are_means_of_quantiles_and_duelling_splits_each(duelling: bool):
    net = QuantileNet(MlpSpec(hidden=(8,), duelling=duelling), 3, actions=2, quantiles=4)
    obs = torch.randn(6, 3)
    found = net.quantiles(obs).detach().numpy()
    assert found.shape == (6, 2, 4)
    np.testing.assert_allclose(net(obs).detach().numpy(), found.mean(-1), rtol=1e-5)
    if net.state_value is not None:
        value = net.state_value(net.trunk(obs)).detach().numpy()
        np.testing.assert_allclose(found.mean(1), value, rtol=1e-4, atol=1e-5)


def some_batch(discount: np.ndarray | None) -> Batch:
    rng = np.random.default_rng(2)
    obs, next_obs = rng.normal(size=(2, 16, 4)).astype(np.float32)
    action, reward = rng.integers(2, size=16), rng.normal(size=16).astype(np.float32)
    weight = rng.uniform(0.5, 1, 16).astype(np.float32)
    return Batch(np.arange(16), obs, action, reward, next_obs, rng.random(16) < 0.5, weight, discount)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("n_step", [1, 3])
def test_targets_are_the_shifted_quantiles_of_the_best_mean(double: bool, n_step: int):
    learner = build(double=double, n_step=n_step)
    with torch.no_grad():
        for parameter in learner.target.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    discount = np.full(16, 0.9**n_step, np.float32) if n_step > 1 else None
    batch = some_batch(discount)
    assert isinstance(learner.target, QuantileNet)
    after = learner.target.quantiles(torch.from_numpy(batch.next_obs)).detach().numpy().astype(np.float64)
    online = learner.net(torch.from_numpy(batch.next_obs)).detach().numpy()
    best = (online if double else after.mean(-1)).argmax(-1)
    ahead = after[np.arange(16), best] * ~batch.terminated[:, None]
    expected = batch.reward[:, None] + 0.9**n_step * ahead
    np.testing.assert_allclose(learner.quantile_targets(batch).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_the_loss_is_weighted_and_priorities_are_the_loss_of_each():
    learner, batch = build(), some_batch(None)
    assert isinstance(learner.net, QuantileNet)
    theta = learner.net.quantiles(torch.from_numpy(batch.obs)).detach().numpy()[np.arange(16), batch.action]
    target = learner.quantile_targets(batch).numpy()
    each = np.array([loss_by_hand(*rows) for rows in zip(theta, target, strict=True)])
    chosen, error, loss = learner.quantile_errors(batch)
    np.testing.assert_allclose(error.detach().numpy(), each, rtol=1e-4)
    np.testing.assert_allclose(chosen.detach().numpy(), theta.mean(-1), rtol=1e-4)
    assert batch.weight is not None
    assert float(loss.detach()) == pytest.approx(float((each * batch.weight).mean()), rel=1e-4)


def test_acting_sees_the_same_best_action_as_learning():
    learner = build()
    obs = np.random.default_rng(4).normal(size=(64, 4)).astype(np.float32)
    best = learner.net(torch.from_numpy(obs)).argmax(-1).numpy()
    np.testing.assert_array_equal(learner.actor.greedy(obs), best)
