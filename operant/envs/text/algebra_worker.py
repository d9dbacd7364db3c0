"""The program that asks sympy whether two formulas are the same: one JSON line in, one out.

It runs as a process of its own, from its source text, and imports nothing of Operant, so that it can be killed at any
moment. What one question costs is limited by the kernel, whatever sympy does: seconds of the processor by a timer
whose signal ends the process, and memory by its address space. Questions are answered by a fork, so that the one that
takes its place need not load sympy again.
"""

from __future__ import annotations

import json
import logging
import os
import re
import resource
import signal
import sys
from random import Random
from typing import NoReturn

DIGITS = 50
SMALL = 10.0**-30  # of the larger of two values
POINTS = 4


def main() -> None:
    """Load sympy, say so, and answer until there is nobody left to ask."""
    seconds, memory = float(sys.argv[1]), int(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
    same("\\frac{\\sqrt{2}x}{2}", "\\frac{x}{\\sqrt{2}}")  # what is loaded at the first question is loaded now
    print("ready", flush=True)
    while os.waitpid(os.fork() or answer_all(seconds, memory), 0)[1]:
        print(json.dumps("undecided"), flush=True)


def answer_all(seconds: float, memory: int) -> NoReturn:
    """Answer until there is nobody left to ask, or a question takes more than its time or memory."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    for line in sys.stdin:
        one, other = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            answer = same(one, other)
        except Exception:  # what sympy cannot do is no proof, neither that two formulas are the same nor that not
            answer = "undecided"
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(answer), flush=True)
    os._exit(0)


def same(one: str, other: str) -> bool | None:
    """Whether two formulas in LaTeX have the same value, whatever positive numbers their letters are.

    None if one of them is no formula. They are compared to 30 digits at points drawn by chance, where two different
    ones agree by accident as good as never. Nothing is simplified: that may take for ever, and may not be able to tell.
    """
    mine, theirs = formula(one), formula(other)
    if mine is None or theirs is None:
        return None
    if mine == theirs:
        return True
    letters = sorted(mine.free_symbols | theirs.free_symbols, key=str)
    rng = Random(0)
    agreed = 0
    for _ in range(POINTS * 4):
        verdict = agree(mine, theirs, letters, rng)
        if verdict is False:
            return False
        agreed += bool(verdict)
        if agreed and (not letters or agreed == POINTS):
            return True
    return False


def agree(mine, theirs, letters, rng):
    """Whether two expressions agree where letters stand for numbers drawn by chance; None where one has no value."""
    from sympy import Rational

    chosen = {letter: Rational(rng.randrange(1_000, 3_000), 1_009) for letter in letters}
    one, other = (value(each.subs(chosen)) for each in (mine, theirs))
    if one is None or other is None:
        return None
    scale = max(abs(part) for part in (*one, *other))
    return all(abs(a - b) <= SMALL * scale for a, b in zip(one, other, strict=True))


def value(expression):
    """The real and the imaginary part of a number, to many digits; None for what has no finite value."""
    from sympy import nan, oo, zoo

    number = expression.evalf(DIGITS)
    if number.free_symbols or not number.is_number or number.has(nan, oo, -oo, zoo):
        return None
    parts = number.as_real_imag()
    if not all(part.is_Float or part.is_Integer or part.is_Rational for part in parts):
        return None
    # A part of which no digit is certain is nothing but the noise of a zero.
    return [0 if part.is_Float and part._prec == 1 else part for part in parts]


def formula(text: str):
    """The expression of a text, decimals as the fractions that they are; None for what is no single expression."""
    from math_verify import LatexExtractionConfig, parse
    from sympy import Expr, Float, Rational

    # math-verify takes 2(\\frac{1}{3}) for a mixed number.
    text = re.sub(r"(?<![\^_0-9.])([0-9]+(?:\.[0-9]+)?)\(", r"\1*(", text)
    found = parse(
        f"${text}$", extraction_config=[LatexExtractionConfig()], parsing_timeout=0, fallback_mode="no_fallback"
    )
    expressions = [each for each in found if isinstance(each, Expr)]
    if not expressions:
        return None
    return expressions[0].xreplace({each: Rational(str(each)) for each in expressions[0].atoms(Float)})


if __name__ == "__main__":
    main()
