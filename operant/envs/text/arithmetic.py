"""Sums, differences, products: `12 + 34`."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from operant.envs.text.generated import at_least
from operant.envs.text.whole_numbers import WholeNumberTask
from operant.errors import UsageError

SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "table": "*"}

Puzzle = tuple[str, int, int]


class Arithmetic(WholeNumberTask):
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
