"""Running statistics against numpy over everything seen."""

from __future__ import annotations

import numpy as np
import pytest

from operant.engines.torch.normalize import ObservationNormalizer, RewardNormalizer, RunningMoments
from operant.errors import RunError


def test_moments_equal_those_of_all_data():
    data = np.random.default_rng(0).normal(3, 2, (500, 4))
    moments = RunningMoments((4,))
    for start in range(0, 500, 7):
        moments.update(data[start : start + 7])
    np.testing.assert_allclose(moments.mean, data.mean(0), rtol=1e-9)
    np.testing.assert_allclose(moments.variance, data.var(0), rtol=1e-9)


def test_observations_are_standardised_and_limited():
    normalizer = ObservationNormalizer((1,), enabled=True, clip=2.0)
    normalizer.update(np.array([[0.0], [2.0]]))
    np.testing.assert_allclose(normalizer(np.array([[2.0], [1.0], [99.0]]))[:, 0], [1, 0, 2], atol=1e-6)


def test_disabled_normaliser_passes_observations_untouched():
    obs = np.ones((2, 3), np.float32)
    assert ObservationNormalizer((3,), enabled=False, clip=1.0)(obs) is obs


def test_one_environment_sees_bounded_observations_from_the_first_on():
    """Whatever their scale, and with parts that never change."""
    for scale in (1e-9, 1.0, 1e9):
        normalizer = ObservationNormalizer((3,), enabled=True, clip=10.0)
        rng = np.random.default_rng(0)
        for _ in range(200):
            obs = np.array([[scale * rng.normal(), scale, 0.0]], np.float32)
            normalizer.update(obs)
            seen = normalizer(obs)
            assert np.isfinite(seen).all()
            assert np.abs(seen[0, 0]) <= 10
            np.testing.assert_allclose(seen[0, 1:], 0, atol=1e-2)


def test_returns_start_at_zero_and_end_with_their_episode():
    """Two environments with rewards 1 and 3, then 1 and 1; the first episode of the second ended in between."""
    normalizer = RewardNormalizer(2, enabled=True, gamma=0.5, clip=None)
    normalizer.update(np.array([1.0, 3.0]), np.array([False, True]))
    normalizer.update(np.array([1.0, 1.0]), np.array([False, False]))
    returns = [0, 0, 1, 3, 1.5, 1]
    np.testing.assert_allclose(normalizer.scaled(np.array([2.0])), 2 / np.std(returns), rtol=1e-6)


def test_normalised_rewards_have_a_limit_without_being_asked():
    normalizer = RewardNormalizer(1, enabled=True, gamma=0.9, clip=None)
    for reward in (0.0,) * 5000 + (1.0,):
        normalizer.update(np.array([reward]), np.array([False]))
    assert normalizer.scaled(np.array([1.0, -1.0])).tolist() == [10.0, -10.0]
    assert normalizer.scaled(np.array([1.0]), steps=3).tolist() == [30.0]


def test_the_limit_is_the_specs_own_where_it_has_one():
    normalizer = RewardNormalizer(1, enabled=True, gamma=0.9, clip=1.5)
    normalizer.update(np.array([4.0]), np.array([False]))
    assert normalizer.scaled(np.array([4.0])).tolist() == [1.5]


def test_reward_clip_holds_without_normalisation():
    normalizer = RewardNormalizer(1, enabled=False, gamma=0.9, clip=1.0)
    assert normalizer.scaled(np.array([-7.0])).tolist() == [-1.0]
    assert normalizer.kept(np.array([-7.0, 0.5])).tolist() == [-1.0, 0.5]


def test_a_replay_keeps_rewards_unscaled_and_says_so():
    normalizer = RewardNormalizer(1, True, 0.9, clip=1.0, replayed=True)
    assert normalizer.kept(np.array([-7.0])).tolist() == [-7.0]
    state = normalizer.state()
    normalizer.restore(state)
    old = {name: array for name, array in state.items() if name != "unscaled"}
    with pytest.raises(RunError, match="normalized by the statistics of their time"):
        normalizer.restore(old)
    RewardNormalizer(1, True, 0.9, clip=1.0).restore(old)
