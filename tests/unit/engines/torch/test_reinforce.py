"""REINFORCE's batches: whole episodes of one policy, the same number in every environment."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch

from operant.engines.torch.reinforce import Reinforce, elite_steps
from operant.run.seeding import Seeds
from operant.spec.schema import Spec


def learner(**settings) -> Reinforce:
    algorithm = {"name": "reinforce", "training_frequency": 6, "gamma": 0.9, **settings}
    spec = Spec.model_validate({"env": {"num_envs": 3}, "agent": {"algorithm": algorithm}})
    return Reinforce(spec, Seeds(3), torch.device("cpu"))


def test_every_environment_plays_its_share_from_start_to_end():
    built = learner()
    episodes = built.play()
    assert Counter(over.index for over in episodes.ended) == {0: 2, 1: 2, 2: 2}
    assert len(episodes.obs) == len(episodes.action) == sum(over.length for over in episodes.ended)
    assert all(len(built.vector.state()[f"actions/{i}"]) == 0 for i in range(3)), "all stand at a fresh start"


def test_returns_reach_the_end_of_each_episode():
    """CartPole pays 1 a step, so the returns of an episode of n steps are those of 1 to n steps left."""
    episodes = learner().play()
    left = [n for over in episodes.ended for n in range(1, over.length + 1)]
    expected = [(1 - 0.9**n) / (1 - 0.9) for n in left]
    np.testing.assert_allclose(np.sort(episodes.returns), np.sort(expected), rtol=1e-5)


def test_frames_are_the_steps_that_were_played():
    built = learner()
    ended = built.iterate()
    assert built.tracker.frames == sum(over.length for over in ended)
    assert (built.tracker.episodes, built.tracker.updates) == (6, 1)


def test_a_time_horizon_cuts_episodes_and_their_returns():
    """CartPole pays 1 a step: a return counts the steps to the end of the episode, or of the batch."""
    episodes = learner(time_horizon=30, training_frequency=4).play()
    assert episodes.frames == 90
    for env, returns in enumerate(episodes.returns.reshape(30, 3).T):
        ends = np.cumsum([over.length for over in episodes.ended if over.index == env])
        left = [min(end for end in (*ends, 30) if end > t) - t for t in range(30)]
        np.testing.assert_allclose(returns, [(1 - 0.9**n) / (1 - 0.9) for n in left], rtol=1e-5)


def best_episodes(lengths: list[int], totals: list[float], fraction: float) -> list[bool]:
    """Which steps are of episodes whose total is not below the linear quantile 1 - fraction, by its definition."""
    ordered, place = sorted(totals), (1 - fraction) * (len(totals) - 1)
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    bound = below + (above - below) * (place - math.floor(place))
    return [total >= bound for length, total in zip(lengths, totals, strict=True) for _ in range(length)]


@pytest.mark.parametrize("fraction", [0.1, 0.25, 0.5, 0.8, 1.0])
def test_elite_steps_are_those_of_the_best_episodes(fraction):
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 9, size=12).tolist()
    rewards = [rng.normal(size=length) for length in lengths]
    over = np.concatenate([np.arange(length) == length - 1 for length in lengths])[:, None]
    actual = elite_steps(np.concatenate(rewards)[:, None], over, fraction)
    expected = best_episodes(lengths, [float(each.sum()) for each in rewards], fraction)
    assert actual[:, 0].tolist() == expected


def test_equal_episodes_are_all_elite():
    over = np.array([[False], [True], [False], [True]])
    assert elite_steps(np.ones((4, 1), np.float32), over, 0.25).all()


def test_only_elite_episodes_are_learnt_from_and_all_are_counted():
    built = learner(elite_fraction=0.5)
    episodes = built.play()
    kept = sorted((over.length for over in episodes.ended), reverse=True)[:3]
    assert episodes.frames == sum(over.length for over in episodes.ended)
    assert len(episodes.returns) == sum(kept)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("none", [1.0, 2.0, 6.0]),
        ("centre", [-2.0, -1.0, 3.0]),
        ("standardise", np.array([-2, -1, 3]) / (14 / 3) ** 0.5),
    ],
)
def test_returns_are_scaled_as_asked(choice, expected):
    weights = learner(normalize_returns=choice).weights(torch.tensor([1.0, 2.0, 6.0]))
    np.testing.assert_allclose(weights.numpy(), expected, rtol=1e-5)
