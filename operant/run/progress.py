"""How far a run has come: the counters that every metric row, episode and checkpoint carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TIMING = ("seconds", "time", "took")
TIMING_PREFIX = "perf/"


@dataclass(frozen=True, slots=True)
class Progress:
    """Counters since the start of the run, over all its attempts.

    `frames` are environment steps summed over environments, `updates` optimiser steps, `seconds`
    the time spent training.
    """

    frames: int = 0
    updates: int = 0
    episodes: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def as_dict(self) -> dict[str, int | float]:
        """The counters as the leading columns of a row; seconds to the millisecond."""
        return {
            "frames": self.frames,
            "updates": self.updates,
            "episodes": self.episodes,
            "tokens": self.tokens,
            "seconds": round(self.seconds, 3),
        }

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Progress:
        """The counters of a row; other columns are ignored, missing ones are zero."""
        return cls(
            frames=int(row.get("frames", 0)),
            updates=int(row.get("updates", 0)),
            episodes=int(row.get("episodes", 0)),
            tokens=int(row.get("tokens", 0)),
            seconds=float(row.get("seconds", 0.0)),
        )


def is_timing(key: str) -> bool:
    """Whether a column measures the clock, and so may differ between a run and its resumed twin."""
    return key in TIMING or key.startswith(TIMING_PREFIX)


def without_timing(row: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a row that the same spec and seed must reproduce exactly; so too of the turns of an episode."""
    kept = {key: value for key, value in row.items() if not is_timing(key)}
    return {**kept, "turns": [without_timing(turn) for turn in row["turns"]]} if "turns" in row else kept
