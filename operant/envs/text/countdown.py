"""Countdown: reach a target with a few numbers and the four operations, each number used once."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from random import Random
from typing import Any

from operant.envs.text.generated import Generated, at_least
from operant.envs.text.numbers import READ
from operant.envs.text.task import RIGHT, UNPARSED, Problem, Verdict

LONGEST_EXPRESSION = 200  # characters: far more than any answer, far less than the parser's depth

_OPERATIONS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_EXPRESSION = re.compile(r"[-0-9(][-+*/() 0-9]*")
_LOOK_ALIKES = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-"})  # noqa: RUF001
_LATEX = re.compile(r"\\(?:times|cdot|div|left|right|boxed|[()\[\]])|[${}]")
_SIGNS = {r"\times": "*", r"\cdot": "*", r"\div": "/"}


class Countdown(Generated):
    """Reach a target of at most `target` with `count` numbers of 1 to `largest`, each used exactly once (final)."""

    def __init__(self, count: int = 3, largest: int = 20, target: int = 100, **common: Any) -> None:
        super().__init__("countdown", **common)
        at_least(self.name, "count", count, 2)
        at_least(self.name, "largest", largest, 2)
        at_least(self.name, "target", target, 2)
        self.count, self.largest, self.target = count, largest, target

    def draw(self, rng: Random) -> tuple[list[int], int, str]:
        """Numbers, a target and one way to reach it; whole numbers above zero on the way."""
        while True:
            chosen = [rng.randint(1, self.largest) for _ in range(self.count)]
            value, way = chosen[0], str(chosen[0])
            for number in chosen[1:]:
                value, way = _step(value, way, number, rng)
            if 0 < value <= self.target:
                return rng.sample(chosen, len(chosen)), value, way

    def key(self, puzzle: tuple[list[int], int, str]) -> str:
        """The numbers in any order, and the target."""
        return f"{sorted(puzzle[0])}:{puzzle[1]}"

    def pose(self, puzzle: tuple[list[int], int, str]) -> tuple[str, dict[str, Any]]:
        """`3 4 5>17:`, or a sentence."""
        given, target, way = puzzle
        answer = {"numbers": given, "target": target, "way": way}
        if self.style == "bare":
            return f"{' '.join(map(str, given))}>{target}:", answer
        listed = ", ".join(map(str, given))
        asked = f"Use each of the numbers {listed} exactly once, with + - * / and parentheses, to make {target}."
        return f"{asked} End with a line that holds only the expression.", answer

    def longest_answer(self) -> int:
        """Numbers, operations and parentheses."""
        return self.count * (len(str(self.largest)) + 3)

    def verify(self, problem: Problem, completion: str) -> Verdict:
        """The expression on the last line (in style `bare` the first), worked out with fractions."""
        expression = self._expression(completion)
        if expression is None:
            return UNPARSED
        try:
            value, used = evaluate(expression)
        except ZeroDivisionError:
            return Verdict(0.0, "wrong", note=f"{expression} divides by zero")
        except (SyntaxError, ValueError):
            return UNPARSED
        if sorted(used) != sorted(problem.answer["numbers"]):
            return Verdict(0.0, "wrong", note="not each number exactly once")
        return RIGHT if value == problem.answer["target"] else Verdict(0.0, "wrong", note=f"{expression} is {value}")

    def gold(self, problem: Problem) -> str:
        """One way to reach the target."""
        return problem.answer["way"]

    def wrong(self, problem: Problem, other: Problem, rng: Random) -> str | None:
        """Another problem's way, which uses other numbers or ends elsewhere."""
        del rng
        mine, theirs = problem.answer, other.answer
        same = sorted(mine["numbers"]) == sorted(theirs["numbers"]) and mine["target"] == theirs["target"]
        return None if same else theirs["way"]

    def equivalents(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """The way in other forms."""
        del rng
        way, target = problem.answer["way"], problem.answer["target"]
        if self.style == "bare":
            return {"alone": way, "with its value": f"{way}={target}"}
        spaced = " ".join(re.findall(r"[0-9]+|[-+*/()]", way))
        latex = spaced.replace("*", "\\times").replace("/", "\\div")
        return {
            "spaces": spaced,
            "with its value": f"{way} = {target}",
            "value first": f"{target} = {way}",
            "in brackets": f"({way})",
            "signs of print": way.replace("*", "\N{MULTIPLICATION SIGN}").replace("/", "\N{DIVISION SIGN}"),
            "after a colon": f"The expression is: {way}",
            "full stop": f"{way}.",
            "after work": f"First I try 3 + 4 = 7.\n\n{way}",
            "LaTeX": f"${latex} = {target}$",
            "LaTeX brackets": f"\\( {latex} \\)",
            "box": f"\\boxed{{{latex}}}",
            "backticks": f"`{way}`",
            "bold": f"**{way}**",
        }

    def near_misses(self, problem: Problem, rng: Random) -> Mapping[str, str]:
        """A number used twice or not at all, another number, another target."""
        del rng
        way, given, target = problem.answer["way"], problem.answer["numbers"], problem.answer["target"]
        summed = {"the sum of all": "+".join(map(str, given))} if sum(given) != target else {}
        return {
            **summed,
            "a number twice": f"{way}+{given[0]}-{given[0]}",
            "a number too many": f"({way})*1",
            "another target": f"({way})*{given[0]}",
            "a number left out": way.rpartition(str(given[-1]))[0].rstrip("+-*/(") or "1",
            "the target alone": str(target),
            "the target is itself": f"{target} = {target}",
        }

    def cheats(self, problem: Problem) -> Mapping[str, str]:
        """No expression, or one that is more than arithmetic."""
        target = problem.answer["target"]
        return {
            **super().cheats(problem),
            "a call": f"int('{target}')",
            "a power": f"{target}**1",
            "a comment": f"{target} # {' '.join(map(str, problem.answer['numbers']))}",
            "a tower": "9**9**9**9",
            "brackets without end": "(" * 5_000,
            "nothing added": "+".join(["0"] * 50),
        }

    def _expression(self, completion: str) -> str | None:
        plain = _LATEX.sub(lambda sign: _SIGNS.get(sign[0], ""), completion[-READ:].translate(_LOOK_ALIKES))
        lines = [line.strip(" \t*`.") for line in plain.splitlines() if line.strip(" \t*`.")]
        if not lines:
            return None
        line = lines[0] if self.style == "bare" else lines[-1]
        sides = line.rpartition(":")[2].split("=")  # "3*4+5 = 17" and "17 = 3*4+5" are the same answer
        found = _EXPRESSION.search(max(sides, key=len))
        return found.group().strip() if found and len(found.group()) <= LONGEST_EXPRESSION else None


def evaluate(expression: str) -> tuple[Fraction, list[int]]:
    """The exact value of an expression and the numbers in it; only whole numbers, + - * / and parentheses.

    Raises SyntaxError or ValueError for anything else. Nothing is executed.
    """
    if len(expression) > LONGEST_EXPRESSION:
        raise ValueError("too long")
    used: list[int] = []
    return _value(ast.parse(expression, mode="eval").body, used), used


def _value(node: ast.expr, used: list[int]) -> Fraction:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        used.append(node.value)
        return Fraction(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.left, used), _value(node.right, used))
    raise ValueError(f"{type(node).__name__} is no arithmetic")


def _step(value: int, way: str, number: int, rng: Random) -> tuple[int, str]:
    """One more operation that keeps to whole numbers above zero."""
    sign = rng.choice("+-*/")
    if sign == "*":
        return value * number, f"{_closed(way)}*{number}"
    if sign == "/" and value % number == 0:
        return value // number, f"{_closed(way)}/{number}"
    if sign == "-" and value > number:
        return value - number, f"{way}-{number}"
    return value + number, f"{way}+{number}"


def _closed(way: str) -> str:
    return f"({way})" if "+" in way or "-" in way else way
