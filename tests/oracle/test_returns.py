"""Estimators of return and advantage against their definitions, summed term by term in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operant.engines.torch.advantages import gae, monte_carlo_returns, n_step_returns


def advantage_by_definition(reward, value, next_value, terminated, truncated, gamma, lam):
    """A_t = sum_l (gamma lam)^l delta_{t+l}, where the sum stops with the episode."""
    steps, num = reward.shape
    result = np.zeros((steps, num), np.float64)
    for n in range(num):
        for t in range(steps):
            weight = 1.0
            for k in range(t, steps):
                bootstrap = 0.0 if terminated[k, n] else float(next_value[k, n])
                delta = float(reward[k, n]) + gamma * bootstrap - float(value[k, n])
                result[t, n] += weight * delta
                weight *= gamma * lam
                if terminated[k, n] or truncated[k, n]:
                    break
    return result


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(1, 12),
    num=st.integers(1, 4),
    gamma=st.floats(0, 1),
    lam=st.floats(0, 1),
)
def test_gae_is_the_sum_of_discounted_errors(seed, steps, num, gamma, lam):
    rng = np.random.default_rng(seed)
    reward, value, next_value = (rng.normal(size=(steps, num)).astype(np.float32) for _ in range(3))
    terminated, truncated = rng.random((steps, num)) < 0.2, rng.random((steps, num)) < 0.2
    expected = advantage_by_definition(reward, value, next_value, terminated, truncated, gamma, lam)
    actual = gae(reward, value, next_value, terminated, truncated, gamma, lam)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_nothing_leaks_across_a_time_limit():
    """A huge reward in the next episode leaves the advantage before the time limit unchanged."""
    zeros, no = np.zeros((3, 1), np.float32), np.zeros((3, 1), bool)
    cut = np.array([[False], [True], [False]])
    quiet = gae(zeros, zeros, zeros, no, cut, 0.99, 0.95)
    loud = gae(np.array([[0.0], [0.0], [1000.0]], np.float32), zeros, zeros, no, cut, 0.99, 0.95)
    assert loud[0, 0] == quiet[0, 0] == 0
    assert loud[2, 0] == 1000


@pytest.mark.parametrize(("terminated", "expected"), [(True, 1.0), (False, 1.0 + 0.9 * 5.0)])
def test_truncation_bootstraps_and_termination_does_not(terminated, expected):
    one = np.ones((1, 1), np.float32)
    flag = np.array([[terminated]])
    assert gae(one, 0 * one, 5 * one, flag, ~flag, 0.9, 0.95)[0, 0] == pytest.approx(expected)


def returns_by_definition(reward, next_value, terminated, truncated, gamma, count):
    """G_t = sum_{k<n} gamma^k r_{t+k} + gamma^n V(s_{t+n}), ended early where an episode or the rollout ends."""
    steps, num = reward.shape
    result = np.zeros((steps, num), np.float64)
    for n in range(num):
        for t in range(steps):
            weight = 1.0
            for k in range(t, steps):
                result[t, n] += weight * float(reward[k, n])
                weight *= gamma
                if terminated[k, n]:
                    break
                if truncated[k, n] or k == steps - 1 or k == t + count - 1:
                    result[t, n] += weight * float(next_value[k, n])
                    break
    return result


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(1, 12),
    num=st.integers(1, 4),
    gamma=st.floats(0, 1),
    count=st.integers(1, 15),
)
def test_n_step_returns_sum_n_rewards_and_bootstrap(seed, steps, num, gamma, count):
    rng = np.random.default_rng(seed)
    reward, next_value = (rng.normal(size=(steps, num)).astype(np.float32) for _ in range(2))
    terminated, truncated = rng.random((steps, num)) < 0.2, rng.random((steps, num)) < 0.2
    expected = returns_by_definition(reward, next_value, terminated, truncated, gamma, count)
    actual = n_step_returns(reward, next_value, terminated, truncated, gamma, count)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_n_step_returns_of_a_whole_rollout_are_gae_with_lambda_one():
    rng = np.random.default_rng(3)
    reward, value, ahead = rng.normal(size=(3, 9, 2))
    terminated, truncated = rng.random((2, 9, 2)) < 0.2
    ahead[:-1] = np.where(truncated[:-1], ahead[:-1], value[1:])
    advantage = gae(reward, value, ahead, terminated, truncated, 0.97, 1.0)
    actual = n_step_returns(reward, ahead, terminated, truncated, 0.97, 9)
    np.testing.assert_allclose(actual, advantage + value, rtol=1e-9)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(1, 12), num=st.integers(1, 4), gamma=st.floats(0, 1))
def test_monte_carlo_returns_sum_to_the_end_of_the_episode(seed, steps, num, gamma):
    rng = np.random.default_rng(seed)
    reward, ended = rng.normal(size=(steps, num)).astype(np.float32), rng.random((steps, num)) < 0.3
    zeros = np.zeros_like(reward)
    expected = returns_by_definition(reward, zeros, ended, ended, gamma, count=steps)
    np.testing.assert_allclose(monte_carlo_returns(reward, ended, gamma), expected, rtol=1e-4, atol=1e-4)
