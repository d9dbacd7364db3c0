"""MATH: competition mathematics with answers in LaTeX (the 500 problems of math500, or files of one's own)."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from importlib import import_module
from random import Random
from types import ModuleType
from typing import Any, Literal

from operant.envs.text.latex import LONGEST_ANSWER, final_answer, last_boxed, normalise, number
from operant.envs.text.sources import Row, find_file, in_share, look_for, read_rows
from operant.envs.text.task import RIGHT, UNPARSED, WRONG, Problem, Task, Verdict
from operant.errors import UsageError

STOP = ("Problem:", "\n\n\n")

# Powers of powers, exponents of five digits and factorials of four: nobody's answer, and sympy would work them out.
_EXPLOSIVE = re.compile(r"\^\{?-?[0-9]{5,}|\^\{[^{}]*\^|[0-9]{4,}\)?!|\)!|!!|[0-9]{30,}")


class Math(Task):
    """Competition mathematics: math500/test.jsonl, and math500/train.jsonl where there is one (final).

    Without a file for training, `train_share` is the share of the test problems that is for training instead, by
    a hash of the problem, and only the others are for evaluation. `level` keeps problems of these levels only.
    """

    SECONDS = 5.0  # sympy may never come back, and then the worker is killed

    def __init__(
        self,
        data: str | None = None,
        level: int | Sequence[int] | None = None,
        train_share: float = 0.0,
        max_tokens: int = 1024,
    ) -> None:
        self.name = "math"
        self.data = data
        self.levels = None if level is None else {level} if isinstance(level, int) else set(level)
        self.train_share = train_share
        self.max_tokens = max_tokens

    def problems(self, split: Literal["train", "eval"]) -> Sequence[Problem]:
        """The problems of a split, at the levels that were asked for."""
        rows = self._rows(split)
        kept = [row for row in rows if self.levels is None or row[1].get("level") in self.levels]
        return [self._problem(split, index, row) for index, row in kept]

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The answer that the text ends with: the same spelling, the same number, or the same to sympy.

        Give this a process of its own with a time limit: sympy can be made to run for ever.
        """
        found = final_answer(completion)
        if found is None:
            return UNPARSED
        if len(found) > LONGEST_ANSWER:
            return Verdict(0.0, "wrong", note="the answer is too long to be one")
        return same_answer(problem.answer["answer"], found)

    def gold(self, problem: Problem) -> str:
        """The worked solution."""
        return f" {problem.answer['solution']}"

    def wrong(self, problem: Problem, other: Problem, rng: Random) -> str | None:
        """Another problem's solution, unless its answer is the same number, list or spelling."""
        del rng
        mine, theirs = problem.answer["answer"], other.answer["answer"]
        return None if _standing(mine) == _standing(theirs) else self.gold(other)

    def prepare(self) -> None:
        """Load sympy, which takes a second or more."""
        load_algebra()

    def _rows(self, split: Literal["train", "eval"]) -> list[tuple[int, Row]]:
        own = look_for("math500", "train.jsonl", self.data)
        if split == "train" and own is not None:
            return list(enumerate(read_rows(own)))
        rows = list(enumerate(read_rows(find_file(self.name, "math500", "test.jsonl", self.data))))
        if own is not None:
            return rows
        if split == "train" and not self.train_share:
            raise UsageError(
                "math: there is no math500/train.jsonl, so there is nothing to train on",
                remedy="put one beside test.jsonl, or give a share of the test problems: train_share: 0.5",
            )
        return [row for row in rows if in_share(row[1]["problem"], self.train_share) == (split == "train")]

    def _problem(self, split: str, index: int, row: Row) -> Problem:
        solution = row["solution"]
        return Problem(
            id=f"{self.name}/{split}/{index}",
            task=self.name,
            prompt=f"Problem:\n{row['problem']}\n\nSolution:",
            answer={"answer": row.get("answer") or last_boxed(solution) or "", "solution": solution},
            stop=STOP,
            max_tokens=self.max_tokens,
        )


def same_answer(truth: str, given: str) -> Verdict:
    """Whether two answers in LaTeX are the same; sympy is asked only where spelling and plain numbers do not tell."""
    mine, theirs = normalise(truth), normalise(given)
    if mine == theirs:
        return RIGHT
    if not theirs:
        return UNPARSED
    if number(mine) is not None and number(theirs) is not None:
        return RIGHT if number(mine) == number(theirs) else WRONG
    if _EXPLOSIVE.search(theirs):
        return Verdict(0.0, "wrong", note="not the same text, and too large to work out")
    return _by_algebra(mine, theirs)


def load_algebra() -> ModuleType | None:
    """The package math_verify, where it is installed."""
    try:
        package = import_module("math_verify")
    except ModuleNotFoundError:
        return None
    logging.getLogger("math_verify").setLevel(logging.CRITICAL)  # it warns of limits that are off, and of each failure
    return package


def _by_algebra(truth: str, given: str) -> Verdict:
    """What math_verify says. Its own time limits need signals, which worker threads have not: the pool has better."""
    algebra = load_algebra()
    if algebra is None:
        return Verdict(0.0, "wrong", note="compared as text only: math-verify is not installed")
    wanted = algebra.parse(f"${truth}$", parsing_timeout=0)
    found = algebra.parse(f"${given}$", parsing_timeout=0)
    if not found:
        return UNPARSED
    return RIGHT if algebra.verify(wanted, found, timeout_seconds=0) else WRONG


def _standing(answer: str) -> Any:
    """What an answer stands for, as far as that can be told without algebra: a number, a set of parts, a spelling."""
    plain = normalise(answer)
    worth = number(plain)
    if worth is not None:
        return worth
    return frozenset(re.split(r",(?![^(\[]*[)\]])", plain))
