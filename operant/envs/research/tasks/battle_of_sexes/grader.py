"""The mean payoff of a round against the pool."""

from __future__ import annotations

from operant.envs.research.grading import Work
from operant.envs.research.kit.matches import grade_match

from .opponents import GAME


def grade(work: Work) -> float:
    """Play strategy.py, or else policy.txt, against opponents drawn by the seed."""
    return grade_match(work, GAME)
