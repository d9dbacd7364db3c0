"""The search that a heuristic steers: complete whatever it says, and honest about its decisions."""

from __future__ import annotations

import itertools
import random

import pytest

from operant.envs.research.grading import Unfit
from operant.envs.research.tasks.sat.grader import checked, hidden_formulas, legal
from operant.envs.research.tasks.sat.solver import Formula, Search, lowest, plain_decisions, random_formula


def satisfiable(formula: Formula, variables: int) -> bool:
    return any(
        all(any((literal > 0) == signs[abs(literal) - 1] for literal in clause) for clause in formula)
        for signs in itertools.product((True, False), repeat=variables)
    )


@pytest.mark.parametrize("seed", range(12))
def test_every_heuristic_comes_to_the_right_answer(seed: int) -> None:
    rng = random.Random(seed)
    formula = random_formula(8, rng.choice((25, 36, 45)), rng)
    for _ in range(4):
        search = Search(formula)
        while search.formula is not None:
            search.decide(rng.choice(rng.choice(search.formula)))
        assert search.satisfied == satisfiable(formula, 8)
        assert search.decisions < 2**8


def test_clauses_of_one_literal_need_no_decision() -> None:
    search = Search([(1,), (-1, 2), (-2, 3)])
    assert (search.formula, search.satisfied, search.decisions) == (None, True, 0)
    assert Search([(1,), (-1,)]).satisfied is False


def test_a_seed_has_its_formulas_and_its_plain_decisions() -> None:
    formulas, plain = hidden_formulas(3)
    assert len(formulas) == len(plain) == 40
    assert plain[0] == plain_decisions(formulas[0]) > 1
    assert hidden_formulas(4)[0] != formulas


def test_the_plainest_choice_is_the_first_variable() -> None:
    assert lowest([(-4, 7), (-3, 9)]) == 3


@pytest.mark.parametrize("literal", [0, 9, True, 2.0, None, "1", [1], float("nan")])
def test_what_is_no_literal_of_the_formula_is_unfit(literal: object) -> None:
    with pytest.raises(Unfit, match="literal of the formula"):
        legal(literal, [(2, 3), (-4, 5)])


def test_both_signs_of_a_variable_that_is_left_are_legal() -> None:
    assert [legal(literal, [(2, -3)]) for literal in (2, -2, 3, -3)] == [2, -2, 3, -3]


@pytest.mark.parametrize("answer", [None, {}, "ab", [1], [1, 2, 3]])
def test_an_answer_must_be_a_list_of_one_choice_each(answer: object) -> None:
    with pytest.raises(Unfit):
        checked(answer, 2)
