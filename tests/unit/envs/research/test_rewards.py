"""Scores as rewards: direction, scale, bounds."""

from __future__ import annotations

import math

import pytest

from operant.envs.research.rewards import MOST_PENALTY, Scale, clipped, improvement, penalty, schemes

UP, DOWN = Scale(0.5, 0.9, "up"), Scale(16.0, 8.0, "down")


@pytest.mark.parametrize(
    ("scale", "raw", "score"),
    [
        (UP, 0.5, 0.0),
        (UP, 0.9, 1.0),
        (UP, 0.7, 0.5),
        (UP, 0.3, -0.5),
        (UP, 5.0, 1.0),
        (UP, -5.0, -1.0),
        (DOWN, 16.0, 0.0),
        (DOWN, 8.0, 1.0),
        (DOWN, 12.0, 0.5),
        (DOWN, 20.0, -0.5),
        (DOWN, 0.0, 1.0),
    ],
)
def test_a_score_is_read_by_baseline_ceiling_and_direction(scale: Scale, raw: float, score: float) -> None:
    assert scale.normalized(raw) == pytest.approx(score)


def test_the_best_is_the_best_in_its_direction() -> None:
    assert UP.best([0.6, 0.8, 0.7]) == 0.8
    assert DOWN.best([12.0, 9.0, 14.0]) == 9.0


def test_improvements_telescope_so_that_ups_and_downs_earn_nothing() -> None:
    scores = [0.3, -0.2, 0.8, 0.1, 0.4]
    earned = [improvement(now, before) for before, now in zip([None, *scores], scores, strict=False)]
    assert sum(earned) == pytest.approx(scores[-1])


def test_faults_cost_a_little_and_never_more_than_that() -> None:
    assert [penalty(faults, 0.02) for faults in (0, 1, 5, 1000)] == [0.0, 0.02, 0.1, MOST_PENALTY]


def test_the_schemes() -> None:
    assert schemes(0.7, [0.2, 0.9, 0.5], None, 0, 0.02) == {"final": 0.7, "best": 0.9, "delta": 0.5}
    assert schemes(-0.3, [], None, 2, 0.02) == pytest.approx({"final": -0.34, "best": -0.04, "delta": -0.04})
    after = schemes(0.7, [0.9], 0.6, 0, 0.02)
    assert after["delta"] == pytest.approx(0.3), "who goes on from 0.6 is paid for the rest"
    assert schemes(0.7, [], 0.6, 0, 0.02)["delta"] == 0.0, "and not for what another did"


def test_what_is_no_number_is_no_score() -> None:
    with pytest.raises(ValueError, match="no number"):
        clipped(math.nan)
