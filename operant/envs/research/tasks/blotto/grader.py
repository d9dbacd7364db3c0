"""Fields won less fields lost, as a share of all, against generals drawn by the seed."""

from __future__ import annotations

import numpy as np

from operant.envs.research.grading import Unfit, Work

from .generals import FIELDS, SOLDIERS, drawn_plans

BATTLES = 2000
MOST_DIGITS = 4


def grade(work: Work) -> float:
    """Fight the plan's battles."""
    plan = parsed_plan(work.text("plan.txt"))
    return float(np.sign(plan - drawn_plans(BATTLES, work.seed)).mean())


def parsed_plan(text: str) -> np.ndarray:
    """Six whole numbers, none below 0, that sum to 120; `Unfit` for anything else."""
    words = text.replace(",", " ").split()
    if len(words) != FIELDS or not all(word.isascii() and word.isdigit() for word in words):
        raise Unfit(f"plan.txt must be {FIELDS} whole numbers, such as 20 20 20 20 20 20: {text[:60]!r}")
    if max(map(len, words)) > MOST_DIGITS or sum(map(int, words)) != SOLDIERS:
        raise Unfit(f"the numbers of plan.txt must sum to {SOLDIERS}: {text[:60]!r}")
    return np.array([int(word) for word in words])
