"""Colonel Blotto: the best plan against brute force, and what counts as a plan."""

from __future__ import annotations

import itertools
from importlib import import_module

import numpy as np
import pytest

from operant.envs.research.folder import load_folder
from operant.envs.research.grading import Unfit
from operant.envs.research.tasks.blotto.generals import SOLDIERS, best_plan, drawn_plans, worth


def mean_score(plan: tuple[int, ...]) -> float:
    return float(sum(gain[count] for gain, count in zip(worth(), plan, strict=True)))


def test_worth_is_the_mean_of_what_is_drawn() -> None:
    plan = np.array([25, 10, 30, 5, 40, 10])
    drawn = np.sign(plan - drawn_plans(200_000, seed=1)).mean()
    assert mean_score(tuple(map(int, plan))) == pytest.approx(drawn, abs=0.003)


def test_no_plan_in_steps_of_twelve_is_better_and_no_move_of_soldiers_helps() -> None:
    value, best = best_plan()
    gains = worth()
    coarse = (
        np.diff((0, *(cut - at for at, cut in enumerate(cuts)), 10)) for cuts in itertools.combinations(range(15), 5)
    )
    assert max(sum(gains[field][12 * part] for field, part in enumerate(plan)) for plan in coarse) < value
    for source, target, count in itertools.product(range(6), range(6), range(1, SOLDIERS)):
        moved = list(best)
        if source != target and moved[source] >= count:
            moved[source] -= count
            moved[target] += count
            assert mean_score(tuple(moved)) <= value + 1e-12


def test_the_stated_numbers_are_the_optimum_and_the_even_plan() -> None:
    stated = load_folder("blotto").task
    value, plan = best_plan()
    assert (sum(plan), min(plan) >= 0) == (SOLDIERS, True)
    assert stated.ceiling == pytest.approx(value, abs=1e-5) == mean_score(plan)
    assert stated.baseline == pytest.approx(mean_score((20,) * 6), abs=1e-5)


def test_the_stated_noise_is_what_seeds_make() -> None:
    _, plan = best_plan()
    scores = [np.sign(np.array(plan) - drawn_plans(2000, seed)).mean() for seed in range(40)]
    assert np.std(scores) == pytest.approx(load_folder("blotto").task.noise, rel=0.35)


@pytest.mark.parametrize(
    "text", ["", "20 20 20 20 20", "20 20 20 20 20 21", "-20 40 40 20 20 20", "2e1 20 20 20 20 20", "9" * 9999]
)
def test_what_is_no_plan_is_unfit(text: str) -> None:
    grader = import_module("operant.envs.research.tasks.blotto.grader")
    with pytest.raises(Unfit, match=r"plan\.txt"):
        grader.parsed_plan(text)


def test_commas_and_line_ends_divide_numbers_too() -> None:
    grader = import_module("operant.envs.research.tasks.blotto.grader")
    assert list(grader.parsed_plan("20,20, 20\n20 20 20\n")) == [20] * 6
