"""Draws: within the space, the same for the same past, and none of the sampler's own memory."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from operant.hpo.sampling import TrialResult, draw, grid_point, holds, to_optuna, to_setting
from operant.spec.distributions import Distribution
from operant.spec.space import parse

SPACE = {
    "a.uniform__uniform": [0.5, 1.5],
    "a.log__loguniform": [1e-4, 1e-1],
    "a.steps__quniform": [0, 1, 0.25],
    "a.whole__randint": [2, 6],
    "a.logwhole__lograndint": [1, 1000],
    "a.bell__randn": [3.0, 0.5],
    "a.pick__choice": ["x", None, True],
    "a.lists": {"dist": "choice", "values": [[64], [64, 64]]},
}


def _told(space: Any, sampler: str, count: int) -> list[TrialResult]:
    told: list[TrialResult] = []
    for number in range(count):
        drawn = draw(space, sampler, 7, number, told)
        told.append(TrialResult(drawn.settings, -abs(drawn.settings["a.uniform"] - 1.0), attributes=drawn.attributes))
    return told


@pytest.mark.parametrize("sampler", ["tpe", "random", "cmaes"])
def test_every_draw_lies_in_the_space_and_comes_again(sampler: str) -> None:
    space = parse(SPACE)
    told = _told(space, sampler, 14)
    for each in told:
        assert all(holds(dimension.distribution, each.settings[dimension.path]) for dimension in space)
        assert each.settings["a.steps"] in (0, 0.25, 0.5, 0.75, 1.0)
        assert each.settings["a.whole"] in (2, 3, 4, 5)
    # What a restarted search would draw for a trial, from what is in the table.
    for number in (5, 13):
        assert draw(space, sampler, 7, number, told[:number]).settings == told[number].settings
    assert draw(space, sampler, 8, 5, told[:5]).settings != told[5].settings
    assert draw(space, sampler, 7, 5, told[:5], attempt=1).settings != told[5].settings


def test_cmaes_goes_on_with_what_was_kept_with_its_trials() -> None:
    space = parse({"a.uniform__uniform": [0.0, 2.0], "a.log__loguniform": [1e-4, 1e-1]})
    told = _told(space, "cmaes", 24)
    assert any(each.attributes for each in told)
    forgotten = [TrialResult(each.settings, each.score) for each in told]
    assert draw(space, "cmaes", 7, 24, told).settings != draw(space, "cmaes", 7, 24, forgotten).settings


def test_tpe_learns_where_the_scores_are() -> None:
    space = parse({"a.uniform__uniform": [0.0, 10.0]})
    late = [each.settings["a.uniform"] for each in _told(space, "tpe", 30)[20:]]
    assert statistics.median(abs(value - 1.0) for value in late) < 1.0


def test_a_normal_distribution_is_drawn_by_its_quantiles() -> None:
    bell = Distribution("normal", (3.0, 0.5))
    assert to_setting(bell, 0.5) == pytest.approx(3.0)
    assert to_setting(bell, 0.8413447) == pytest.approx(3.5, abs=1e-5)
    assert to_optuna(bell, 3.5) == pytest.approx(0.8413447)
    drawn = [each.settings["a.bell"] for each in _bells(200)]
    assert statistics.mean(drawn) == pytest.approx(3.0, abs=0.1)
    assert statistics.stdev(drawn) == pytest.approx(0.5, abs=0.1)


def _bells(count: int) -> list[Any]:
    return [draw(parse({"a.bell__normal": [3.0, 0.5]}), "random", 0, number, []) for number in range(count)]


def test_trials_outside_a_narrowed_space_are_passed_over() -> None:
    wide, narrow = parse({"a.x__uniform": [0.0, 10.0]}), parse({"a.x__uniform": [0.0, 1.0]})
    told = [TrialResult({"a.x": 9.0}, 1.0), TrialResult({"a.x": 0.5}, 0.0)]
    assert 0 <= draw(narrow, "tpe", 0, 2, told).settings["a.x"] <= 1
    assert 0 <= draw(wide, "tpe", 0, 2, told).settings["a.x"] <= 10


def test_a_grid_tries_every_point_in_turn() -> None:
    space = parse({"a.x__choice": ["p", "q"], "a.n__randint": [1, 4], "a.s__quniform": [0.0, 0.5, 0.25]})
    points = [tuple(grid_point(space, number).values()) for number in range(18)]
    assert len(set(points)) == 18
    assert points[:4] == [("p", 1, 0.0), ("p", 1, 0.25), ("p", 1, 0.5), ("p", 2, 0.0)]
