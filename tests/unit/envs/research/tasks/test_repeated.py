"""Repeated games: the dynamic programme against brute force, and the ceilings that the tasks state."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from importlib import import_module

import numpy as np
import pytest

from operant.envs.research.folder import load_folder
from operant.envs.research.grading import Unfit
from operant.envs.research.kit.matches import checked_table
from operant.envs.research.kit.repeated import (
    Game,
    Opponent,
    Strategy,
    best_response,
    expected,
    from_table,
    play,
    tables,
)

GAMES = ("battle_of_sexes", "prisoners_dilemma")
SMALL = Game(
    "AB",
    {"AA": 2.0, "AB": 0.0, "BA": 0.5, "BB": 1.0},
    rounds=3,
    pool=(
        Opponent("leans", 2, lambda own, other: 0.3),
        Opponent("copies", 1, lambda own, other: float(other[-1:] == "A")),
        Opponent("drifts", 1, lambda own, other: 0.5 if not own else 0.8 * (own[-1] == other[-1])),
    ),
)


def game_of(task: str) -> Game:
    return import_module(f"operant.envs.research.tasks.{task}.opponents").GAME


def from_plan(plan: Mapping[str, str], otherwise: str) -> Strategy:
    """The strategy that `best_response` found; histories that cannot come about are answered with `otherwise`."""
    return lambda mine, theirs: plan.get(theirs, otherwise)


def test_no_plan_of_a_small_game_is_better_than_the_programme_says() -> None:
    pasts = ["", *(map("".join, itertools.product("AB", repeat=1))), *map("".join, itertools.product("AB", repeat=2))]
    worths = [
        expected(SMALL, from_plan(dict(zip(pasts, moves, strict=True)), "A"))
        for moves in itertools.product("AB", repeat=len(pasts))
    ]
    best, plan = best_response(SMALL)
    assert best == pytest.approx(max(worths), abs=1e-12)
    assert expected(SMALL, from_plan(plan, "A")) == pytest.approx(best, abs=1e-12)


def test_a_strategy_that_looks_at_its_own_past_as_well_is_no_better() -> None:
    """Its own past follows from the opponent's, so five letters are plans like others."""
    best, _ = best_response(SMALL)
    assert max(expected(SMALL, from_table(SMALL, table)) for table in tables(SMALL)) <= best + 1e-12


@pytest.mark.parametrize("task", GAMES)
def test_the_stated_ceiling_is_the_optimum_and_the_baseline_the_better_constant(task: str) -> None:
    game, stated = game_of(task), load_folder(task).task
    best, plan = best_response(game)
    constants = [expected(game, from_table(game, move * 5)) for move in game.moves]
    of_tables = [expected(game, from_table(game, table)) for table in tables(game)]
    assert stated.ceiling == pytest.approx(best, abs=1e-4)
    assert expected(game, from_plan(plan, game.moves[0])) == pytest.approx(best, abs=1e-9)
    assert stated.baseline == pytest.approx(max(constants), abs=1e-4)
    assert stated.baseline + 0.4 * (best - stated.baseline) < max(of_tables) < best


@pytest.mark.parametrize("task", GAMES)
def test_play_scatters_around_what_is_expected_by_the_stated_noise(task: str) -> None:
    game, stated = game_of(task), load_folder(task).task
    table = from_table(game, game.moves[0] * 5)
    scores = [play(game, lambda pasts: [table(*past) for past in pasts], 1000, seed) for seed in range(12)]
    assert np.mean(scores) == pytest.approx(expected(game, table), abs=3 * stated.noise / 12**0.5)
    assert np.std(scores) < 2 * stated.noise
    assert len(set(scores)) > 1, "seeds must matter"


@pytest.mark.parametrize("text", ["", "AAAA", "AAAAAA", "AAAAC", "aaaaa", '{"score": 1}'])
def test_what_is_no_table_is_unfit(text: str) -> None:
    with pytest.raises(Unfit, match="five letters"):
        checked_table(text, SMALL)


def test_a_table_may_have_spaces_and_line_ends() -> None:
    assert checked_table(" A BB\nAB\n", SMALL) == "ABBAB"
