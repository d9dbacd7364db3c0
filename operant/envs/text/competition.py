"""MATH: competition mathematics with answers in LaTeX (the 500 problems of math500, or files of one's own)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Literal

from operant.envs.text.algebra import ALGEBRA, Undecided
from operant.envs.text.forms import form_of, is_certain, plain_equal, same_form
from operant.envs.text.latex import LONGEST_ANSWER, final_answer, last_boxed, normalize, number, unit_power
from operant.envs.text.latex_forms import latex_cheats, latex_forms, latex_near_misses
from operant.envs.text.sources import Row, find_file, in_share, look_for, read_rows
from operant.envs.text.task import RIGHT, UNPARSED, WRONG, Problem, Task, Verdict, failed, no_gold, without_question
from operant.errors import UsageError

STOP = ("Problem:", "\n\n\n")

# Powers of powers, exponents of five digits and factorials of four: nobody's answer, and sympy would work them out.
_EXPLOSIVE = re.compile(r"\^\{?-?[0-9]{5,}|\^\{[^{}]*\^|[0-9]{4,}\)?!|\)!|!!|[0-9]{30,}")
_WORDED = re.compile(r"\s*\\(?:text|mbox|textrm)\{")
MOST_READ = 4 * LONGEST_ANSWER
TOO_LONG = Verdict(0.0, "wrong", note="the answer is too long to be one")
TOO_LARGE = Verdict(0.0, "wrong", note="the answer is too large to be one")


class Math(Task):
    """Competition mathematics: math500/test.jsonl, and math500/train.jsonl where there is one (final).

    Without a file for training, `train_share` is the share of the test problems that is for training instead, by
    a hash of the problem, and only the others are for evaluation. `level` keeps problems of these levels only.
    """

    SECONDS = 300.0  # sympy has a limit of its own, far below this

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
        """The answer that the text ends with: the same spelling, the same number, or the same to sympy."""
        found = final_answer(without_question(problem, completion))
        return UNPARSED if found is None else same_answer(problem.answer["answer"], found)

    def gold(self, problem: Problem) -> str:
        """The worked solution."""
        return f" {problem.answer['solution']}"

    def hint(self, problem: Problem) -> str:
        """The final answer alone."""
        return problem.answer["answer"]

    def wrong(self, problem: Problem, other: Problem, rng: Random) -> str | None:
        """Another problem's solution, unless its answer is the same number, list or spelling."""
        del rng
        mine, theirs = problem.answer["answer"], other.answer["answer"]
        return None if _standing(mine) == _standing(theirs) else self.gold(other)

    def equivalents(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """The final answer in other forms."""
        del rng
        return latex_forms(problem.answer["answer"])

    def near_misses(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """Other final answers."""
        return latex_near_misses(problem.answer["answer"], rng)

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """No answer, or any."""
        return {**super().cheats(problem), **latex_cheats(problem.prompt)}

    def start(self) -> None:
        """Start the process of sympy, which takes a second or more."""
        ALGEBRA.start()

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
    """Whether two answers in LaTeX are the same: of the same form, and each part the same as its counterpart.

    Spelling and plain numbers are compared here. What they leave open is asked of another process, with limits on its
    time and its memory, and what it cannot decide within them is `undecided`.
    """
    if len(given) > MOST_READ:
        return TOO_LONG
    mine, theirs = normalize(truth), normalize(given)
    if not mine:
        return no_gold(truth)
    if len({unit_power(truth), unit_power(given)} - {""}) > 1:
        return WRONG
    if mine == theirs:
        return RIGHT
    if not theirs:
        return UNPARSED
    if len(given) > LONGEST_ANSWER:
        return TOO_LONG
    if number(mine) is not None and number(theirs) is not None:
        return RIGHT if number(mine) == number(theirs) else WRONG
    if _EXPLOSIVE.search(theirs) and not _EXPLOSIVE.search(mine):
        return TOO_LARGE
    if _WORDED.match(truth):
        return RIGHT if mine.lower() == theirs.lower() else WRONG
    try:
        return RIGHT if same_form(form_of(truth), form_of(given), _equal) else WRONG
    except Undecided as problem:
        return failed(str(problem), "undecided")


def _equal(one: str, other: str) -> bool:
    """Whether two formulas are the same."""
    equal = plain_equal(one, other)
    if equal is not None:
        return equal
    if not (is_certain(one) and is_certain(other)):
        return False
    if _EXPLOSIVE.search(other) or _EXPLOSIVE.search(one):
        raise Undecided("not the same text, and too large to work out")
    if not ALGEBRA.installed:
        raise Undecided("not the same text, and math-verify, which compares formulas, is not installed")
    return ALGEBRA.same(one, other) is True


def _standing(answer: str) -> Any:
    """What an answer stands for, as far as that can be found without algebra: a number, a set of parts, a spelling."""
    plain = normalize(answer)
    worth = number(plain)
    if worth is not None:
        return worth
    return frozenset(re.split(r",(?![^(\[]*[)\]])", plain))
