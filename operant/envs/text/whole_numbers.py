"""Tasks that are answered by one whole number: the verdict, and answers whose verdict is known."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from random import Random

from operant.envs.text.generated import Generated
from operant.envs.text.number_forms import number_cheats, number_forms, number_near_misses, other_numbers
from operant.envs.text.numbers import is_several, last_number, leading_integer
from operant.envs.text.task import RIGHT, UNPARSED, WRONG, Problem, Verdict, without_question


class WholeNumberTask(Generated):
    """A generated task whose answers are whole numbers (abstract)."""

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The number that ends the text, or in style `bare` begins it."""
        return _verdict(problem, completion, bare=self.style == "bare")

    def gold(self, problem: Problem) -> str:
        """The number."""
        return str(problem.answer)

    def equivalents(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """The number in other forms."""
        del rng
        return _forms(problem.answer, self.style == "bare")

    def near_misses(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """Other numbers."""
        return _near_misses(problem.answer, rng, self.style == "bare")

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """No number, or all of them."""
        return {**super().cheats(problem), **number_cheats(problem.prompt)}


def _forms(number: int, bare: bool) -> dict[str, str]:
    """Answers that give a whole number; where `bare` they begin with it."""
    if bare:
        return {"alone": str(number), "a space before": f" {number}", "more behind": f"{number}\nand more 17"}
    return number_forms(Decimal(number), marked=False)


def _near_misses(number: int, rng: Random, bare: bool) -> dict[str, str]:
    """Answers that give another number."""
    if not bare:
        return number_near_misses(Decimal(number), rng, marked=False)
    others = {name: str(value) for name, value in other_numbers(Decimal(number), rng).items() if value % 1 == 0}
    return {**others, "not at once": f"= {number}", "a digit more": f"{number}1"}


def _verdict(problem: Problem, completion: str, bare: bool) -> Verdict:
    """The verdict on one number: the last of the text, or where `bare` the one that it begins with.

    The question again is no answer, nor is a list of candidates.
    """
    answer, said = problem.answer, completion if bare else without_question(problem, completion)
    found = leading_integer(said) if bare else None if is_several(said) else last_number(said)
    if found is None:
        return UNPARSED
    return RIGHT if found == answer else WRONG
