"""Generalised advantage estimation against its definition, summed term by term in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operant.engines.deep.returns import gae


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


@settings(deadline=None, max_examples=60)
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
