"""One conflict between settings, and the nearest valid values to offer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Conflict:
    """One setting that cannot stand with others.

    `reason` continues the words "`path` = value"; `valid` says which values would do; `fix` is the value of `path` to
    try first, or None when no value of that setting alone would do; `others` are the settings that it conflicts with,
    which a person may have written instead of `path`. `allowed_once` says that runs were once made with it: these can
    still be read, and go on as they began.
    """

    path: str
    reason: str
    valid: str
    fix: Any = None
    others: tuple[str, ...] = ()
    allowed_once: bool = False


def near_divisors(total: int, wanted: int, least: int = 1) -> list[int]:
    """The divisors of `total` next to `wanted`, below and above; only those of at least `least`."""
    return neighbours([d for d in divisors(total) if d >= least and d != wanted], wanted)


def divisors(total: int) -> list[int]:
    """Every divisor of `total`, the smallest first."""
    small = [n for n in range(1, math.isqrt(total) + 1) if total % n == 0]
    return sorted({*small, *(total // n for n in small)})


def near_multiples(step: int, wanted: int, most: int) -> list[int]:
    """The multiples of `step` next to `wanted`, below and above; none beyond `most`."""
    below = wanted // step * step
    return [n for n in (below, below + step) if 0 < n <= most and n != wanted]


def closest(values: Sequence[int], wanted: int) -> int | None:
    """The value nearest to `wanted`; the smaller of two that are equally near."""
    return min(values, key=lambda value: (abs(value - wanted), value), default=None)


def neighbours(ordered: Sequence[int], wanted: int) -> list[int]:
    """The values next to `wanted`, below and above."""
    below = [value for value in ordered if value < wanted][-1:]
    return below + [value for value in ordered if value > wanted][:1]


def in_words(own: Sequence[object], other: str, others: Sequence[object]) -> str:
    """Values of the setting itself, and of another that would do as well; either may be empty."""
    parts = [" or ".join(map(str, own))] if own else []
    if others:
        parts.append(f"or {other} " + " or ".join(map(str, others)) if own else f"{other} {others[0]}")
    return "nearest valid values: " + "; ".join(parts)
