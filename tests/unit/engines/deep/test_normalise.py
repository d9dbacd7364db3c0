"""Running statistics against numpy over everything seen."""

from __future__ import annotations

import numpy as np

from operant.engines.deep.normalise import ObservationNormaliser, RewardNormaliser, RunningMoments


def test_moments_equal_those_of_all_data():
    data = np.random.default_rng(0).normal(3, 2, (500, 4))
    moments = RunningMoments((4,))
    for start in range(0, 500, 7):
        moments.update(data[start : start + 7])
    np.testing.assert_allclose(moments.mean, data.mean(0), rtol=1e-9)
    np.testing.assert_allclose(moments.variance, data.var(0), rtol=1e-9)


def test_observations_are_standardised_and_limited():
    normaliser = ObservationNormaliser((1,), enabled=True, clip=2.0)
    normaliser.learn(np.array([[0.0], [2.0]]))
    np.testing.assert_allclose(normaliser(np.array([[2.0], [1.0], [99.0]]))[:, 0], [1, 0, 2], atol=1e-6)


def test_disabled_normaliser_passes_observations_untouched():
    obs = np.ones((2, 3), np.float32)
    assert ObservationNormaliser((3,), enabled=False, clip=1.0)(obs) is obs


def test_rewards_are_scaled_by_the_deviation_of_the_discounted_return():
    rng = np.random.default_rng(0)
    normaliser = RewardNormaliser(2, enabled=True, gamma=0.9, clip=None)
    running, seen = np.zeros(2), []
    for _ in range(50):
        reward, ended = rng.normal(size=2).astype(np.float32), rng.random(2) < 0.2
        running = running * 0.9 + reward
        seen.extend(running.tolist())
        scaled = normaliser(reward, ended)
        np.testing.assert_allclose(scaled, reward / np.sqrt(np.var(seen) + 1e-8), rtol=1e-5)
        running[ended] = 0


def test_reward_clip_holds_without_normalisation():
    assert RewardNormaliser(1, enabled=False, gamma=0.9, clip=1.0)(np.array([-7.0]), np.array([False])) == [-1.0]
