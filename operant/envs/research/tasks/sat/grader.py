"""How many decisions the search makes under a heuristic, against those of the plainest one on the same formulas."""

from __future__ import annotations

import functools
import math
import random
from typing import Any

from operant.envs.research.grading import Unfit, Work

from .solver import Formula, Search, plain_decisions, random_formula

CODE = "heuristic.py"
FORMULAS, VARIABLES, CLAUSES = 40, 30, 160
WORST = 2
SECONDS = 10.0

# The heuristic is loaded at the first question, when the pipes are out of its reach.
RUNNER = """
def decide(formulas):
    from heuristic import choose
    return [choose([list(clause) for clause in formula]) for formula in formulas]

answer(decide)
"""


def grade(work: Work) -> float:
    """The logarithm (base 2) of the share of decisions; a search that takes twice the plain one's is ended there."""
    code = work.artefact(CODE)
    formulas, plain = hidden_formulas(work.seed)
    searches = [Search(formula) for formula in formulas]
    with work.player(RUNNER, {CODE: code}, SECONDS) as player:
        while waiting := [search for search, most in zip(searches, plain, strict=True) if goes_on(search, most)]:
            chosen = player.ask([search.formula for search in waiting])
            for search, literal in zip(waiting, checked(chosen, len(waiting)), strict=True):
                search.decide(legal(literal, search.formula or []))
    return math.log2(sum(search.decisions for search in searches) / sum(plain))


@functools.lru_cache(maxsize=256)
def hidden_formulas(seed: int) -> tuple[list[Formula], list[int]]:
    """The formulas of a seed, and how many decisions the plainest heuristic makes on each."""
    rng = random.Random(seed)
    formulas = [random_formula(VARIABLES, CLAUSES, rng) for _ in range(FORMULAS)]
    return formulas, [plain_decisions(formula) for formula in formulas]


def goes_on(search: Search, plain: int) -> bool:
    """Whether a search needs another decision and may have it."""
    return search.formula is not None and search.decisions < WORST * plain


def checked(answer: Any, count: int) -> list[Any]:
    """One choice for every formula; `Unfit` for anything else."""
    if type(answer) is not list or len(answer) != count:
        raise Unfit("the heuristic must choose one literal for every formula")
    return answer


def legal(literal: Any, formula: Formula) -> int:
    """A literal of a variable that is left in the formula; `Unfit` for anything else."""
    if type(literal) is not int or not any(literal in clause or -literal in clause for clause in formula):
        raise Unfit(f"choose(formula) must give a literal of the formula, not {str(literal)[:40]!r}")
    return literal
