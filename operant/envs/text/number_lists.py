"""Lists of numbers: find the largest, put them in order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import Any

from operant.envs.text.generated import Generated, at_least
from operant.envs.text.numbers import numbers
from operant.envs.text.task import RIGHT, UNPARSED, WRONG, Problem, Verdict, without_question
from operant.envs.text.whole_numbers import WholeNumberTask

_LEADING_LIST = re.compile(r"[ \t]*([0-9]{1,20}(?:[ ,]{1,2}[0-9]{1,20})*)")


class _NumberList(Generated):
    """`count` different numbers of `digits` digits (abstract)."""

    def __init__(self, name: str, count: int, digits: int, **common: Any) -> None:
        super().__init__(name, **common)
        at_least(name, "count", count, 2)
        at_least(name, "digits", digits, 1)
        self.range = range(10 ** (digits - 1) if digits > 1 else 0, 10**digits)
        at_least(name, "10^digits", len(self.range), count)
        self.count = count
        self.digits = digits

    def draw(self, rng: Random) -> list[int]:
        """Different numbers, so that there is one largest and one order."""
        return rng.sample(self.range, self.count)

    def key(self, puzzle: list[int]) -> str:
        """The same numbers in another order lie in the same split."""
        return repr(sorted(puzzle))


class Largest(_NumberList, WholeNumberTask):
    """The largest of `count` numbers of `digits` digits (final)."""

    def __init__(self, count: int = 5, digits: int = 2, **common: Any) -> None:
        super().__init__("largest", count, digits, **common)

    def pose(self, puzzle: list[int]) -> tuple[str, int]:
        """`max:12 34=`, or a sentence."""
        if self.style == "bare":
            return f"max:{' '.join(map(str, puzzle))}=", max(puzzle)
        listed = ", ".join(map(str, puzzle))
        return f"Which is the largest of these numbers: {listed}? Answer with the number only.", max(puzzle)

    def longest_answer(self) -> int:
        """One number, and one character to end with."""
        return self.digits + 1


class Sort(_NumberList):
    """`count` numbers of `digits` digits, from the smallest to the largest (final)."""

    def __init__(self, count: int = 4, digits: int = 2, **common: Any) -> None:
        super().__init__("sort", count, digits, **common)

    def pose(self, puzzle: list[int]) -> tuple[str, list[int]]:
        """`sort:3 1 2=`, or a sentence."""
        if self.style == "bare":
            return f"sort:{' '.join(map(str, puzzle))}=", sorted(puzzle)
        listed = ", ".join(map(str, puzzle))
        return f"Sort these numbers from smallest to largest: {listed}. Answer with the sorted list only.", sorted(
            puzzle
        )

    def longest_answer(self) -> int:
        """Every number, and one character after each."""
        return self.count * (self.digits + 1) + 1

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The last `count` numbers of the text, or in style `bare` all that it begins with."""
        if self.style == "bare":
            match = _LEADING_LIST.match(completion)
            found = [int(word) for word in re.findall(r"[0-9]+", match.group(1))] if match else []
        else:
            found = numbers(without_question(problem, completion))[-self.count :]
        if len(found) < self.count:
            return UNPARSED
        return RIGHT if found == problem.answer else WRONG

    def gold(self, problem: Problem) -> str:
        """The numbers in order."""
        return (" " if self.style == "bare" else ", ").join(map(str, problem.answer))

    def equivalents(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """The list in other forms."""
        del rng
        listed, spaced = ", ".join(map(str, problem.answer)), " ".join(map(str, problem.answer))
        if self.style == "bare":
            return {"spaces": spaced, "commas": listed, "a space before": f" {spaced}"}
        return {
            "spaces": spaced,
            "brackets": f"[{listed}]",
            "sentence": f"The sorted list is {listed}.",
            "lines": "\n".join(map(str, problem.answer)),
            "smaller than": " < ".join(map(str, problem.answer)),
            "bold": f"**{listed}**",
            "after work": f"7 is the number of steps.\n{listed}",
        }

    def near_misses(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """Two numbers exchanged, one changed, one missing, all turned round."""
        right, place = list(problem.answer), rng.randrange(len(problem.answer) - 1)
        swapped = [*right[:place], right[place + 1], right[place], *right[place + 2 :]]
        changed = [*right[:place], right[place] - 1, *right[place + 1 :]]
        lists = {"exchanged": swapped, "changed": changed, "missing": right[:-1], "turned round": right[::-1]}
        misses = {name: ", ".join(map(str, numbers)) for name, numbers in lists.items()}
        return {**misses, "two lists": f"{misses['exchanged']} or {', '.join(map(str, swapped[::-1]))}"}
