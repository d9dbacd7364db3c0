"""Every loss of the torch engine against float64 numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from operant.engines.torch import losses


@pytest.fixture(params=range(5))
def rng(request):
    return np.random.default_rng(request.param)


def tensor(array):
    return torch.from_numpy(np.asarray(array, np.float32))


def close(actual, expected):
    np.testing.assert_allclose(float(actual), expected, rtol=2e-5, atol=1e-6)


def test_clipped_surrogate(rng):
    new, old, advantage = rng.normal(size=(3, 64)) * 0.5
    ratio = np.exp(new - old)
    expected = -np.minimum(ratio * advantage, np.clip(ratio, 0.8, 1.2) * advantage).mean()
    close(losses.clipped_surrogate(tensor(new), tensor(old), tensor(advantage), 0.2), expected)


def test_policy_gradient_loss(rng):
    logp, advantage = rng.normal(size=(2, 64))
    close(losses.policy_gradient_loss(tensor(logp), tensor(advantage)), -(logp * advantage).mean())


def test_value_losses(rng):
    value, old, target = rng.normal(size=(3, 64))
    close(losses.value_loss(tensor(value), tensor(target)), ((value - target) ** 2).mean())
    error = np.abs(3 * (value - target))
    linear = np.where(error < 1, error**2 / 2, error - 0.5).mean()
    assert (error < 1).any()
    assert (error > 1).any()
    close(losses.value_loss(tensor(3 * value), tensor(3 * target), "huber"), linear)
    near = old + np.clip(value - old, -0.2, 0.2)
    expected = np.maximum((value - target) ** 2, (near - target) ** 2).mean()
    close(losses.clipped_value_loss(tensor(value), tensor(old), tensor(target), 0.2), expected)


def test_a_value_clip_that_nothing_reaches_changes_neither_loss_nor_gradient(rng):
    value, old, target = (tensor(part) for part in rng.normal(size=(3, 64)))
    value.requires_grad_()
    plain, clipped = losses.value_loss(value, target), losses.clipped_value_loss(value, old, target, 1e6)
    assert plain == clipped
    gradients = [torch.autograd.grad(loss, value)[0] for loss in (plain, clipped)]
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-6)


def test_kl_and_clip_fraction(rng):
    new, old = rng.normal(size=(2, 64)) * 0.3
    ratio = np.exp(new - old)
    close(losses.approximate_kl(tensor(new), tensor(old)), (ratio - 1 - np.log(ratio)).mean())
    close(losses.clip_fraction(tensor(new), tensor(old), 0.2), (np.abs(ratio - 1) > 0.2).mean())
    close(losses.approximate_kl(tensor(old), tensor(old)), 0.0)


def test_standardise(rng):
    advantage = rng.normal(3, 2, 64)
    actual = losses.standardize(tensor(advantage)).numpy()
    np.testing.assert_allclose(actual, (advantage - advantage.mean()) / (advantage.std() + 1e-8), rtol=1e-4, atol=1e-5)
    assert losses.standardize(tensor([7.0])).tolist() == [0.0]


def test_epsilon_greedy_value_is_the_expectation_over_its_actions(rng):
    q = rng.normal(size=(64, 5))
    probability = np.full((64, 5), 0.3 / 5)
    probability[np.arange(64), q.argmax(-1)] += 0.7
    actual = losses.epsilon_greedy_value(tensor(q), 0.3).numpy()
    np.testing.assert_allclose(actual, (probability * q).sum(-1), rtol=1e-4, atol=1e-5)


def test_q_target_bootstraps_unless_terminated(rng):
    reward, next_q = rng.normal(size=(2, 64))
    terminated = rng.random(64) < 0.5
    actual = losses.q_target(tensor(reward), torch.from_numpy(terminated), tensor(next_q), 0.97).numpy()
    np.testing.assert_allclose(actual, reward + 0.97 * np.where(terminated, 0, next_q), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["huber", "mse"])
def test_weighted_td_loss(rng, kind):
    error, weight = rng.normal(0, 2, 64), rng.random(64)
    huber = np.where(np.abs(error) < 1, 0.5 * error**2, np.abs(error) - 0.5)
    each = huber if kind == "huber" else error**2
    close(losses.weighted_td_loss(tensor(error), tensor(weight), kind), (weight * each).mean())
    close(losses.weighted_td_loss(tensor(error), None, kind), each.mean())


def test_boltzmann_value():
    q = np.random.default_rng(7).normal(size=(16, 4))
    p = np.exp(q / 0.3) / np.exp(q / 0.3).sum(-1, keepdims=True)
    np.testing.assert_allclose(losses.boltzmann_value(tensor(q), 0.3).numpy(), (p * q).sum(-1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(losses.boltzmann_value(tensor(q), 0.0).numpy(), q.max(-1), rtol=1e-6)
