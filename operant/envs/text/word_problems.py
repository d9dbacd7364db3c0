"""Word problems: gsm8k (grade-school mathematics) and svamp, whose answers are one number."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from random import Random
from typing import Literal

from operant.envs.text.latex import LONGEST_ANSWER, last_boxed, normalize, number
from operant.envs.text.number_forms import number_cheats, number_forms, number_near_misses
from operant.envs.text.numbers import first_number, is_several, last_number, numbers, value
from operant.envs.text.sources import Row, find_file, read_rows
from operant.envs.text.task import RIGHT, UNPARSED, WRONG, Problem, Task, Verdict, no_gold, without_question
from operant.errors import UsageError

STOP = ("[Question]", "Question:", "Q:", "\n\n\n")
SVAMP_TRAIN = 700  # rows, as the set is usually split: the other 300 are for evaluation

_HASHES = re.compile(r"####([^\n#]*)")
_SAID = re.compile(r"answer\s{1,3}is:?([^\n]*)", re.IGNORECASE)
_LABEL = re.compile(r"answer\**:\**([^\nA-Za-z]{1,60})\n?", re.IGNORECASE)
_CALCULATOR = re.compile(r"<<[^<>\n]*>>")


class _WordProblems(Task):
    """Questions whose answer is one number, asked as `Q: ... A:` (abstract)."""

    QUICK = True

    def __init__(self, name: str, data: str | None, shots: int, max_tokens: int) -> None:
        if shots < 0:
            raise UsageError(f"{name}: shots cannot be below zero")
        self.name = name
        self.data = data
        self.shots = shots
        self.max_tokens = max_tokens

    @abstractmethod
    def rows(self, split: Literal["train", "eval"]) -> list[Row]:
        """The rows of a split, each with `question`, `answer` (the number) and `solution` (an answer as text)."""

    def problems(self, split: Literal["train", "eval"]) -> Sequence[Problem]:
        """All questions of a split; a question that serves as an example is never asked."""
        rows = list(enumerate(self.rows(split)))
        return [self._problem(split, i, row) for i, row in (rows[self.shots :] if split == "train" else rows)]

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """Numeric equality with the number that the text gives as its answer."""
        return same_number(given_answer(without_question(problem, completion)), problem.answer["number"])

    def gold(self, problem: Problem) -> str:
        """The worked solution."""
        return " " + problem.answer["solution"]

    def hint(self, problem: Problem) -> str:
        """The number alone."""
        return problem.answer["number"]

    def wrong(self, problem: Problem, other: Problem, rng: object) -> str | None:
        """Another question's solution, unless it ends in the same number."""
        del rng
        same = value(problem.answer["number"]) == value(other.answer["number"])
        return None if same else self.gold(other)

    def equivalents(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """The number in other forms."""
        del rng
        return number_forms(value(problem.answer["number"]))

    def near_misses(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """Other numbers, and two at once."""
        return number_near_misses(value(problem.answer["number"]), rng)

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """No number, or all of them."""
        return {**super().cheats(problem), **number_cheats(problem.prompt)}

    def _problem(self, split: str, index: int, row: Row) -> Problem:
        return Problem(
            id=f"{self.name}/{split}/{index}",
            task=self.name,
            prompt=f"{self._examples}Q: {row['question']}\nA:",
            answer={"number": row["answer"], "solution": row["solution"]},
            stop=STOP,
            max_tokens=self.max_tokens,
        )

    @cached_property
    def _examples(self) -> str:
        """The first `shots` training questions with their solutions, the same before every question."""
        rows = self.rows("train")[: self.shots] if self.shots else []
        return "".join(f"Q: {row['question']}\nA: {row['solution']}\n\n" for row in rows)


class Gsm8k(_WordProblems):
    """Grade-school mathematics: gsm8k/train.jsonl and gsm8k/test.jsonl (final)."""

    def __init__(self, data: str | None = None, shots: int = 0, max_tokens: int = 512) -> None:
        super().__init__("gsm8k", data, shots, max_tokens)

    def rows(self, split: Literal["train", "eval"]) -> list[Row]:
        """The rows of a file, without the notes for a calculator."""
        path = find_file(self.name, "gsm8k", "train.jsonl" if split == "train" else "test.jsonl", self.data)
        return [_gsm8k_row(row) for row in read_rows(path)]


class Svamp(_WordProblems):
    """Short problems with a twist: svamp/SVAMP.json, the first 700 for training (final)."""

    def __init__(self, data: str | None = None, shots: int = 0, max_tokens: int = 512) -> None:
        super().__init__("svamp", data, shots, max_tokens)

    def rows(self, split: Literal["train", "eval"]) -> list[Row]:
        """The first 700 rows, or the rest."""
        rows = read_rows(find_file(self.name, "svamp", "SVAMP.json", self.data))
        return [_svamp_row(row) for row in (rows[:SVAMP_TRAIN] if split == "train" else rows[SVAMP_TRAIN:])]


def given_answer(text: str) -> Fraction | None:
    """The number that a text gives as its answer.

    In this order: after the last `####`, in the last box, after the last "the answer is" or, where nothing but a number
    follows, "answer:"; else the last number. Only one place is read, so several candidates earn nothing.
    """
    for place in _HASHES.findall(text)[-1:]:
        if numbers(place):
            return first_number(place)
    boxed = last_boxed(text)
    if boxed and numbers(boxed):
        return _boxed_number(boxed)
    for place in (*_SAID.findall(text)[-1:], *_LABEL.findall(text)[-1:]):
        if numbers(place):
            return first_number(place)
    last = None if is_several(text) else last_number(text)
    return None if last is None else Fraction(last)


def _boxed_number(boxed: str) -> Fraction | None:
    """The number in a box; several are none."""
    worth = number(normalize(boxed)) if len(boxed) <= LONGEST_ANSWER else None
    return worth if worth is not None or len(set(numbers(boxed))) > 1 else first_number(boxed)


def same_number(found: Fraction | Decimal | None, answer: object) -> Verdict:
    """Whether a number that was found, if any, is the one that a reference answer writes."""
    right = value(str(answer))
    if right is None:
        return no_gold(answer)
    return UNPARSED if found is None else RIGHT if Fraction(found) == Fraction(right) else WRONG


def _gsm8k_row(row: Row) -> Row:
    solution = _CALCULATOR.sub("", row["answer"])
    return {"question": row["question"], "answer": row["answer"].rpartition("####")[2].strip(), "solution": solution}


def _svamp_row(row: Row) -> Row:
    body = row["Body"].strip()
    answer = str(int(row["Answer"]) if float(row["Answer"]).is_integer() else row["Answer"])
    question = f"{body}{'' if body.endswith(('.', '?', ',')) else '.'} {row['Question'].strip()}"
    return {"question": question, "answer": answer, "solution": f"The answer is {answer}."}
