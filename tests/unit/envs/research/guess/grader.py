"""Asks a program for the double of numbers that only this file draws."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

from operant.envs.research.grading import Work, finite

QUESTIONS = 20
PROGRAM = """
from solution import solve
answer(solve)
"""


def files(data: Mapping[str, Path], seed: int) -> dict[str, bytes]:
    """Five pairs, other ones for every problem."""
    rng = Random(seed)
    pairs = [(n, 2 * n) for n in (rng.randrange(1000) for _ in range(5))]
    return {"examples.txt": "".join(f"{n} {m}\n" for n, m in pairs).encode()}


def grade(work: Work) -> float:
    """The share of questions answered rightly."""
    rng = Random(work.seed)
    with work.player(PROGRAM, {"solution.py": work.artefact("solution.py")}, seconds=5) as player:
        questions = [rng.randrange(10**6) for _ in range(QUESTIONS)]
        return sum(finite(player.ask(n)) == 2 * n for n in questions) / QUESTIONS
