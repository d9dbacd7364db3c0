"""Random play: alike among legal actions, repeatable by seed, and as good as chance."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from operant.engines.torch.learners import build_learner
from operant.engines.torch.policies import Uniform
from operant.engines.torch.random import Random
from operant.envs.vector.evaluation import play, random_return
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

ROWS = 30_000


def learner(env: str, seed: int = 0) -> Random:
    spec = Spec.model_validate(
        {"env": {"name": env, "num_envs": 2, "max_frame": 4000}, "agent": {"algorithm": {"name": "random"}}}
    )
    built = build_learner(spec, Seeds(seed), torch.device("cpu"))
    assert isinstance(built, Random)
    return built


def test_every_legal_action_is_drawn_equally_often():
    policy = Uniform(4, discrete=True)
    noise = policy.noise(np.random.default_rng(0), (ROWS,))
    output = np.empty((ROWS, 0))
    everything = np.bincount(policy.sample(output, noise, None), minlength=4) / ROWS
    np.testing.assert_allclose(everything, 0.25, atol=0.01)
    mask = np.tile([True, False, True, True], (ROWS, 1))
    legal = np.bincount(policy.sample(output, noise, None, mask), minlength=4) / ROWS
    assert legal[1] == 0
    np.testing.assert_allclose(legal[[0, 2, 3]], 1 / 3, atol=0.01)


def test_real_actions_fill_their_bounds():
    policy = Uniform(2, discrete=False)
    action = policy.sample(np.empty((ROWS, 0)), policy.noise(np.random.default_rng(0), (ROWS,)), None)
    assert action.shape == (ROWS, 2)
    assert np.abs(action).max() <= 1
    np.testing.assert_allclose(action.mean(0), 0, atol=0.02)
    np.testing.assert_allclose(action.var(0), 1 / 3, atol=0.01)


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1", "operant/Masked-v0"])
def test_an_evaluation_repeats_with_its_seed_and_not_with_another(env: str):
    actor, spec = learner(env).actor, learner(env).spec.env

    def scores(by: int) -> list[float]:
        return [over.score for over in play(spec, actor.player(by), 4, 5)]

    assert scores(5) == scores(5)
    assert any(scores(5) != scores(other) for other in range(6, 20))


def test_sessions_differ_in_their_evaluations():
    first, second = (learner("Pendulum-v1", seed) for seed in (0, 1))
    scores = [[over.score for over in play(each.spec.env, each.actor.player(5), 4, 5)] for each in (first, second)]
    assert scores[0] != scores[1]


def test_training_and_evaluation_are_as_good_as_chance():
    built = learner("CartPole-v1")
    while built.tracker.frames < 4000:
        built.iterate()
    chance = random_return(built.spec.env)
    row = built.tracker.flush()
    assert row["train/return"] == pytest.approx(chance, rel=0.25)
    scores = [over.score for over in play(built.spec.env, built.actor.player(3), 100, 3)]
    assert np.mean(scores) == pytest.approx(chance, rel=0.25)
    assert built.tracker.updates == 0
