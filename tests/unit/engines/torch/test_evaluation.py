"""Evaluation plays exactly the seeds it was given, whoever ends first."""

from __future__ import annotations

from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest

from operant.envs.vector.evaluation import play, random_return
from operant.spec.settings.sections import EnvSpec


class Counted(gym.Env):
    """An episode lasts as many steps as its seed says; every reset and step of any environment is counted."""

    observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)
    counts: ClassVar[dict[str, int]] = {"reset": 0, "step": 0}

    def __init__(self, render_mode: str | None = None) -> None:
        self.left = 0

    def reset(self, *, seed=None, options=None):
        self.counts["reset"] += 1
        self.left = seed or 1
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.counts["step"] += 1
        self.left -= 1
        assert self.left >= 0, "an episode that is over is not played on"
        return np.zeros(1, np.float32), 1.0, self.left == 0, False, {}


def left(obs, *_):
    return np.zeros(len(obs), np.int64)


def test_every_seed_once_and_the_same_alone_or_together():
    together = {over.seed: over.score for over in play(EnvSpec(), left, 40, 700)}
    assert sorted(together) == list(range(700, 740))
    alone = {seed: next(play(EnvSpec(), left, 1, seed)).score for seed in (700, 719, 739)}
    assert alone == {seed: together[seed] for seed in alone}


def test_nothing_is_played_beyond_the_episodes_asked_for():
    Counted.counts.update(reset=0, step=0)
    scores = {over.seed: over.score for over in play(EnvSpec(name=f"{__name__}:Counted"), left, 20, 1)}
    assert scores == {seed: seed for seed in range(1, 21)}
    assert Counted.counts["reset"] == 20
    assert Counted.counts["step"] == sum(range(1, 21))


def test_random_play_on_cartpole_scores_what_is_known():
    assert random_return(EnvSpec()) == pytest.approx(22, abs=4)


def test_random_play_of_long_episodes_ends():
    assert -1800 < random_return(EnvSpec(name="Pendulum-v1")) < -900
