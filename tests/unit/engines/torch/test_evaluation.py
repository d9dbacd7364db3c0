"""Evaluation plays exactly the seeds it was given, whoever ends first."""

from __future__ import annotations

import numpy as np
import pytest

from operant.envs.vector.evaluation import play, random_return
from operant.spec.settings.sections import EnvSpec


def left(obs, *_):
    return np.zeros(len(obs), np.int64)


def test_every_seed_once_and_the_same_alone_or_together():
    together = {over.seed: over.score for over in play(EnvSpec(), left, 40, 700)}
    assert sorted(together) == list(range(700, 740))
    alone = {seed: next(play(EnvSpec(), left, 1, seed)).score for seed in (700, 719, 739)}
    assert alone == {seed: together[seed] for seed in alone}


def test_random_play_on_cartpole_scores_what_is_known():
    assert random_return(EnvSpec()) == pytest.approx(22, abs=4)


def test_random_play_of_long_episodes_ends():
    assert -1800 < random_return(EnvSpec(name="Pendulum-v1")) < -900
