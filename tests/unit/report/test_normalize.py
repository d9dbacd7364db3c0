"""References against the tables they come from."""

from __future__ import annotations

import pytest

from benchmarks.published import BOX2D, CLASSIC, MUJOCO
from operant.report.normalize import normalized, reference_of
from operant.report.reference_scores import CONTROL


def test_references_are_the_best_published_figures():
    for problem in (*CLASSIC, *BOX2D, *MUJOCO):
        by, best = max(problem.scores.items(), key=lambda item: item[1])
        assert CONTROL[problem.env][1:] == (best, by), problem.env


def test_a_run_is_measured_from_its_own_random_play():
    found = reference_of("CartPole-v1", 20.0)
    assert (found.random, found.reference) == (20.0, 498.94)
    assert normalized([20.0, 498.94, 259.47], found).tolist() == pytest.approx([0.0, 1.0, 0.5])
    assert reference_of("CartPole-v1").random == 22.15


def test_games_are_measured_by_a_human_player():
    assert reference_of("ALE/Pong-v5").reference == 14.6
    assert reference_of("ALE/Unknown-v5") is None
    assert reference_of("my:Env-v0") is None
