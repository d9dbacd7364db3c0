"""The mean return of a table of actions from starts drawn by the seed."""

from __future__ import annotations

import numpy as np

from operant.envs.research.grading import Unfit, Work

from .car import mean_return

CARS = 1000
LARGEST = 200


def grade(work: Work) -> float:
    """Drive by the table."""
    return mean_return(parsed_table(work.text("policy.txt")), CARS, work.seed)


def parsed_table(text: str) -> np.ndarray:
    """Rows of digits 0, 1 and 2, all of one length; `Unfit` for anything else."""
    rows = text.split()
    if not rows or len({len(row) for row in rows}) > 1 or not set("".join(rows)) <= set("012"):
        raise Unfit(f"policy.txt must be rows of the digits 0, 1 and 2, of one length, such as 0 2: {text[:60]!r}")
    if max(len(rows), len(rows[0])) > LARGEST:
        raise Unfit(f"policy.txt may have {LARGEST} rows and {LARGEST} columns at most")
    return np.array([[int(digit) for digit in row] for row in rows])
