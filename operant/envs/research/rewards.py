"""What scores are worth: pure sums that know the metric's direction, its baseline and its ceiling.

A normalized score is 0 at the baseline and 1 at the ceiling, whichever way is better, and never beyond -1 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

MOST_PENALTY = 0.1
FAILED, BETWEEN = -0.5, 0.2


@dataclass(frozen=True)
class Scale:
    """How a task's raw scores are read."""

    baseline: float
    ceiling: float
    direction: Literal["up", "down"] = "up"

    @property
    def sign(self) -> int:
        """1 where more is better, else -1."""
        return 1 if self.direction == "up" else -1

    @property
    def span(self) -> float:
        """How far apart baseline and ceiling are."""
        return abs(self.ceiling - self.baseline)

    def normalized(self, raw: float) -> float:
        """The normalized score."""
        return clipped(self.sign * (raw - self.baseline) / self.span)

    def best(self, raws: Sequence[float]) -> float:
        """The best of some raw scores."""
        return max(raws, key=lambda raw: self.sign * raw)


def clipped(value: float) -> float:
    """A number between -1 and 1."""
    if math.isnan(value):
        raise ValueError("a score that is no number")
    return max(-1.0, min(1.0, value))


def improvement(current: float, previous: float | None) -> float:
    """What a validation earns: its normalized score less the one before, the first less the baseline's 0.

    These sums telescope, so that going down and up again earns nothing.
    """
    return current - (previous or 0.0)


def penalty(faults: int, each: float) -> float:
    """What faults cost in all: so much each, and never more than `MOST_PENALTY`."""
    return min(faults * each, MOST_PENALTY)


def schemes(
    hidden: float, validated: Sequence[float], start: float | None, faults: int, each: float
) -> dict[str, float]:
    """The rewards of a rollout by scheme, from normalized scores.

    `final` is the hidden score; `best` is the best validated one, 0 at least, for who never improved has kept the
    baseline; `delta` is the sum of all improvements since `start`. Each pays for faults alike.
    """
    cost = penalty(faults, each)
    last = validated[-1] if validated else start
    return {
        "final": hidden - cost,
        "best": max([0.0, *validated]) - cost,
        "delta": improvement(last or 0.0, start) - cost,
    }


def tiered(measured: float | None, above: bool, least: float = 0.0) -> float:
    """1 for a score `above` a threshold, 0.2 for any other above the baseline, `least` at the baseline.

    `measured` is normalized and no less than the baseline's 0, or None where nothing was scored, which costs.
    """
    if measured is None:
        return FAILED
    if measured <= 0:
        return least
    return 1.0 if above else BETWEEN
