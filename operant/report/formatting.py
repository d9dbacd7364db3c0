"""Numbers as people read them: scores, counts, durations. One style for every table, curve and line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TextIO

SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
MINUTE, HOUR, DAY = 60, 3600, 86_400


def digits_for(*values: float) -> int:
    """Decimals that show about four significant digits of the largest value, at most four."""
    largest = max((abs(value) for value in values), default=0.0)
    magnitude = math.floor(math.log10(largest)) if largest > 0 else 0
    return min(4, max(0, 3 - magnitude))


def score(value: float | None) -> str:
    """`498.6`, `-0.125`, or a dash when there is none."""
    return "-" if value is None else f"{value:,.{digits_for(value)}f}"


def compact(value: float) -> str:
    """`0`, `950`, `25k`, `1.25M`: at most three significant digits and an SI letter; small numbers in full."""
    for scale, letter in SI:
        if abs(value) >= scale * 0.9995:
            return f"{float(f'{value / scale:.3g}'):g}{letter}"
    return f"{float(f'{value:.3g}'):g}"


def axis_labels(ticks: Sequence[float], in_full: float = 1e5) -> list[str]:
    """Labels of evenly spaced ticks: one SI letter and just the decimals that distinguish them.

    Numbers below `in_full` carry no letter.
    """
    largest = max(abs(tick) for tick in ticks)
    scale, letter = next(((s, unit) for s, unit in SI if largest >= s and largest >= in_full), (1.0, ""))
    scaled = [tick / scale for tick in ticks]
    slack = 1e-6 * max(abs(value) for value in scaled)
    decimals = next((d for d in range(9) if all(abs(round(v, d) - v) <= slack for v in scaled)), 9)
    return [f"{value:,.{decimals}f}{letter}" if value else "0" for value in (round(v, decimals) for v in scaled)]


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min 05 s`, `2 h 07 min`, `3 d 04 h`: two units at most."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE:02d} s"
    if whole < DAY:
        return f"{whole // HOUR} h {whole % HOUR // MINUTE:02d} min"
    return f"{whole // DAY} d {whole % DAY // HOUR:02d} h"


def clock(seconds: float) -> str:
    """`0:07`, `3:05`, `26:07:40`: a duration for a narrow column."""
    whole = round(seconds)
    hours = f"{whole // HOUR}:" if whole >= HOUR else ""
    minutes = whole % HOUR // MINUTE
    return f"{hours}{minutes:02d}:{whole % MINUTE:02d}" if hours else f"{minutes}:{whole % MINUTE:02d}"


def carries_unicode(stream: TextIO) -> bool:
    """Whether the stream's encoding can carry every character; an unknown one is taken to be ASCII."""
    return (getattr(stream, "encoding", None) or "ascii").lower().startswith("utf")


def columns(rows: list[list[str]], right: set[int] | None = None) -> list[str]:
    """Rows of cells as lines with aligned columns, two spaces apart; columns in `right` are flush right."""
    right = right or set()
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(row: list[str]) -> str:
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return [line(row) for row in rows]
