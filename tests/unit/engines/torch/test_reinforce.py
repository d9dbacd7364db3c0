"""REINFORCE's batches: whole episodes of one policy, the same number in every environment."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from operant.engines.torch.reinforce import Reinforce
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
