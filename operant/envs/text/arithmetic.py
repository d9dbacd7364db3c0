"""Sums, differences, products: `12 + 34`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Any

from operant.envs.text.generated import Generated, at_least
from operant.envs.text.number_forms import number_cheats, number_forms, number_near_misses, other_numbers
from operant.envs.text.numbers import is_several, last_number, leading_integer
from operant.envs.text.task import RIGHT, UNPARSED, WRONG, Problem, Verdict, without_question
from operant.errors import UsageError

SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "table": "*"}

Puzzle = tuple[str, int, int]


class Arithmetic(Generated):
    """Two numbers of up to `digits` digits and one of `operations`: add, subtract, multiply, table (final).

    `table` is the multiplication table, 2 to 9 times 2 to 12. A difference is never below zero.
    """

    def __init__(self, operations: str | Sequence[str] = "add", digits: int = 2, **common: Any) -> None:
        super().__init__("arithmetic", **common)
        at_least(self.name, "digits", digits, 1)
        named = operations.replace(" ", "").split(",") if isinstance(operations, str) else list(operations)
        for operation in named:
            if operation not in SIGNS:
                raise UsageError(
                    f"arithmetic: there is no operation {operation!r}", remedy=f"operations: {', '.join(SIGNS)}"
                )
        self.operations = named
        self.digits = digits

    def draw(self, rng: Random) -> Puzzle:
        """An operation and its two numbers."""
        operation = rng.choice(self.operations)
        if operation == "table":
            return operation, rng.randint(2, 9), rng.randint(2, 12)
        low, high = (0 if self.digits == 1 else 10 ** (self.digits - 1)), 10**self.digits - 1
        left, right = rng.randint(low, high), rng.randint(low, high)
        return (operation, max(left, right), min(left, right)) if operation == "subtract" else (operation, left, right)

    def key(self, puzzle: Puzzle) -> str:
        """The order of two numbers makes no new sum or product."""
        operation, left, right = puzzle
        return f"{min(left, right)}{SIGNS[operation]}{max(left, right)}"

    def pose(self, puzzle: Puzzle) -> tuple[str, int]:
        """`12+34=`, or a sentence."""
        operation, left, right = puzzle
        sign = SIGNS[operation]
        answer = {"+": left + right, "-": left - right, "*": left * right}[sign]
        if self.style == "bare":
            return f"{left}{sign}{right}=", answer
        return f"What is {left} {sign} {right}? Answer with the number only.", answer

    def longest_answer(self) -> int:
        """The digits of a product, and one character to end with."""
        return 2 * max(self.digits, 2) + 1

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The number that ends the text, or in style `bare` begins it."""
        return verify_integer(problem, completion, bare=self.style == "bare")

    def gold(self, problem: Problem) -> str:
        """The number."""
        return str(problem.answer)

    def equivalents(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """The number in other forms."""
        del rng
        return integer_forms(problem.answer, self.style == "bare")

    def near_misses(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """Other numbers."""
        return integer_near_misses(problem.answer, rng, self.style == "bare")

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """No number, or all of them."""
        return {**super().cheats(problem), **number_cheats(problem.prompt)}


def integer_forms(number: int, bare: bool) -> dict[str, str]:
    """Answers that give a whole number; where `bare` they begin with it."""
    if bare:
        return {"alone": str(number), "a space before": f" {number}", "more behind": f"{number}\nand more 17"}
    return number_forms(Decimal(number), marked=False)


def integer_near_misses(number: int, rng: Random, bare: bool) -> dict[str, str]:
    """Answers that give another number."""
    if not bare:
        return number_near_misses(Decimal(number), rng, marked=False)
    others = {name: str(value) for name, value in other_numbers(Decimal(number), rng).items() if value % 1 == 0}
    return {**others, "not at once": f"= {number}", "a digit more": f"{number}1"}


def verify_integer(problem: Problem, completion: str, bare: bool) -> Verdict:
    """The verdict on one number: the last of the text, or where `bare` the one that it begins with.

    The question again is no answer, nor is a list of candidates.
    """
    answer, said = problem.answer, completion if bare else without_question(problem, completion)
    found = leading_integer(said) if bare else None if is_several(said) else last_number(said)
    if found is None:
        return UNPARSED
    return RIGHT if found == answer else WRONG
