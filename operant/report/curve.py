"""A learning curve in the terminal: the mean over seeds as a line, their range as a shade.

Braille patterns give each character 2 x 4 dots; where the stream cannot carry them, plain ASCII does.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from operant.report.align import Aligned, Curve, align
from operant.report.formatting import axis_labels, carries_unicode
from operant.report.stats import Floats

WIDTH, HEIGHT = 64, 12
DOTS_ACROSS, DOTS_DOWN = 2, 4
BRAILLE = 0x2800
# The Unicode bit of each dot of a braille pattern, by its row and column inside the character.
DOT_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
NICE_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Pen:
    """The characters of a drawing: braille dots for the line when `dotted`, else `point`."""

    dotted: bool
    point: str
    shade: str
    side: str
    tick: str
    corner: str
    floor: str
    mark: str


BRAILLE_PEN = Pen(True, "", "░", "│", "┤", "└", "─", "┬")
ASCII_PEN = Pen(False, "*", ".", "|", "+", "+", "-", "+")


def pen_for(stream: TextIO) -> Pen:
    """Braille where the stream's encoding can carry it, ASCII elsewhere."""
    return BRAILLE_PEN if carries_unicode(stream) else ASCII_PEN


def draw_curve(
    curves: Sequence[Curve],
    *,
    title: str,
    unit: str = "frames",
    width: int = WIDTH,
    height: int = HEIGHT,
    pen: Pen | None = None,
) -> str:
    """The drawing, ready to print; a sentence instead when no seed has a value yet.

    The line is the mean and is drawn only where every seed has data. `unit` names the x axis, which
    starts at 0.
    """
    pen = pen or pen_for(sys.stdout)
    drawn = [curve for curve in curves if len(curve.x)]
    if not drawn:
        return f"{title}: no values yet"
    right = max(float(curve.x[-1]) for curve in drawn) or 1.0
    ticks = nice_ticks(min(float(c.y.min()) for c in drawn), max(float(c.y.max()) for c in drawn))
    seeds = align(drawn, _columns(drawn, right, width * DOTS_ACROSS))
    cells = _draw_cells(seeds, ticks, height, pen)
    lines = [
        _heading(title, len(drawn), pen),
        *_with_y_axis(cells, ticks, pen),
        *_x_axis(right, unit, ticks, width, pen),
    ]
    return "\n".join(line.rstrip() for line in lines)


def nice_ticks(low: float, high: float, most: int = 5) -> Floats:
    """Round numbers, evenly spaced, that enclose `low` and `high` in at most `most` steps."""
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-300):
        margin = abs(high) / 10 or 1.0
        low, high = low - margin, high + margin
    scale = 10.0 ** math.floor(math.log10((high - low) / most))
    steps = (nice * factor for factor in (scale, scale * 10) for nice in NICE_STEPS)
    first, last, step = next(
        (first, last, step)
        for step in steps
        for first, last in [(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9))]
        if last - first <= most
    )
    return np.arange(first, last + 1, dtype=np.float64) * step


def _columns(curves: Sequence[Curve], right: float, count: int) -> Floats:
    """Dot columns over [0, right]; the nearest one is moved onto a lone point so that it is visible."""
    at = np.linspace(0.0, right, count)
    for x in (float(curve.x[0]) for curve in curves if len(curve.x) == 1):
        at[np.abs(at - x).argmin()] = x
    return at


def _draw_cells(seeds: Aligned, ticks: Floats, height: int, pen: Pen) -> list[str]:
    """The picture without axes, top line first."""
    dots = height * DOTS_DOWN

    def row_of(value: float) -> int:
        return round((float(ticks[-1]) - value) / float(ticks[-1] - ticks[0]) * (dots - 1))

    line = np.zeros((dots, len(seeds.x)), dtype=bool)
    band = np.zeros_like(line)
    previous: int | None = None
    for column in np.flatnonzero(seeds.present):
        values = seeds.values[:, column]
        top, bottom = row_of(np.nanmax(values)), row_of(np.nanmin(values))
        if seeds.shared[column]:
            here = row_of(values.mean())
            start = here if previous is None else previous
            line[min(start, here) : max(start, here) + 1, column] = True
            previous = here
        else:
            # No line here: whole characters, so that the range of the seeds that are left is visible however thin.
            top, bottom, previous = top - top % DOTS_DOWN, bottom - bottom % DOTS_DOWN + DOTS_DOWN - 1, None
        band[top : bottom + 1, column] = True
    return [_characters(*rows, pen) for rows in zip(_blocks(line), _blocks(band), strict=True)]


def _blocks(dots: np.ndarray) -> np.ndarray:
    """Dots grouped by character: `[row, column, dot row, dot column]`."""
    down, across = dots.shape
    return dots.reshape(down // DOTS_DOWN, DOTS_DOWN, across // DOTS_ACROSS, DOTS_ACROSS).swapaxes(1, 2)


def _characters(line: np.ndarray, band: np.ndarray, pen: Pen) -> str:
    """One row of the picture: the line where it passes, else a shade where the band fills half a character."""

    def character(line_dots: np.ndarray, band_dots: np.ndarray) -> str:
        if line_dots.any():
            return chr(BRAILLE + int(DOT_BITS[line_dots].sum())) if pen.dotted else pen.point
        return pen.shade if band_dots.mean() >= 0.5 else " "

    return "".join(character(*pair) for pair in zip(line, band, strict=True))


def _heading(title: str, seeds: int, pen: Pen) -> str:
    return f"{title}, one seed" if seeds == 1 else f"{title}, mean of {seeds} seeds ({pen.shade} their range)"


def _with_y_axis(cells: list[str], ticks: Floats, pen: Pen) -> list[str]:
    """The picture with numbers and an axis to its left."""
    bottom_dot = len(cells) * DOTS_DOWN - 1
    depths = (ticks[-1] - ticks) / (ticks[-1] - ticks[0])
    rows = [round(float(depth) * bottom_dot) // DOTS_DOWN for depth in depths]
    labels = dict(zip(rows, axis_labels(ticks.tolist()), strict=True))
    margin = _margin(ticks)
    return [
        f"{labels.get(row, ''):>{margin}} {pen.tick if row in labels else pen.side}{cell_row}"
        for row, cell_row in enumerate(cells)
    ]


def _x_axis(right: float, unit: str, ticks: Floats, width: int, pen: Pen) -> list[str]:
    """The floor with marks at round numbers, and below it the numbers and their unit."""
    margin = " " * _margin(ticks)
    places = [x for x in nice_ticks(0.0, right).tolist() if x <= right * (1 + 1e-9)]
    columns = [round(x / right * (width - 1)) for x in places]
    marks = dict(zip(columns, axis_labels(places, in_full=1e4), strict=True))
    floor = "".join(pen.mark if column in marks else pen.floor for column in range(width))
    numbers = [" "] * (width + 8)
    for column, text in marks.items():
        start = max(0, column - len(text) // 2)
        numbers[start : start + len(text)] = text
    return [f"{margin} {pen.corner}{floor}", f"{margin}  {''.join(numbers).rstrip()} {unit}"]


def _margin(ticks: Floats) -> int:
    return max(map(len, axis_labels(ticks.tolist())))
