"""Learning curves as inline SVG that takes its colours from the page, so that it is right in light and in dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from operant.report.align import Curve
from operant.report.curve import nice_ticks
from operant.report.formatting import axis_labels
from operant.report.plots import Line
from operant.report.stats import Floats

WIDTH, HEIGHT = 380, 220
RIGHT, TOP, BOTTOM = 10, 8, 26
DIGIT_WIDTH = 7
MOST_POINTS = 240
COLOURS = 8


class Scale:
    """From values to places in the drawing."""

    def __init__(self, lines: Sequence[Line]) -> None:
        curves = [curve for line in lines for _, curve in line.seeds]
        bands = [band for line in lines for band in (line.low, line.high) if band is not None and len(band)]
        values = [curve.y for curve in curves] + bands
        self.right = max(float(curve.x[-1]) for curve in curves) or 1.0
        self.ticks = nice_ticks(min(float(v.min()) for v in values), max(float(v.max()) for v in values), most=4)
        self.labels = axis_labels(self.ticks.tolist())
        self.left = 10 + DIGIT_WIDTH * max(map(len, self.labels))

    def x(self, value: Floats | float) -> Floats | float:
        """Across."""
        return self.left + value / self.right * (WIDTH - self.left - RIGHT)

    def y(self, value: Floats | float) -> Floats | float:
        """Down."""
        low, high = float(self.ticks[0]), float(self.ticks[-1])
        return TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM)


def chart(lines: Sequence[Line], title: str, unit: str = "frames") -> str:
    """One figure: the seeds as thin lines, their mean and its band. Lines without a value are left out."""
    drawn = [line for line in lines if line.seeds]
    if not drawn:
        return ""
    scale = Scale(drawn)
    body = "".join(_line(line, scale, number % COLOURS) for number, line in enumerate(drawn))
    return (
        f'<figure class="chart"><figcaption>{escape(title)}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)} over {escape(unit)}">'
        f"{_axes(scale, unit)}{body}</svg></figure>"
    )


def legend(labels: Sequence[str]) -> str:
    """What each colour stands for; nothing where there is one line."""
    if len(labels) < 2:
        return ""
    items = "".join(f'<li class="c{k % COLOURS}">{escape(label)}</li>' for k, label in enumerate(labels))
    return f'<ul class="legend">{items}</ul>'


def _axes(scale: Scale, unit: str) -> str:
    parts = []
    for tick, label in zip(scale.ticks.tolist(), scale.labels, strict=True):
        y = scale.y(tick)
        parts.append(f'<line class="grid" x1="{scale.left}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{scale.left - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(label)}</text>')
    places = [x for x in nice_ticks(0.0, scale.right, most=4).tolist() if x <= scale.right * (1 + 1e-9)]
    for number, (place, label) in enumerate(zip(places, axis_labels(places, in_full=1e4), strict=True)):
        x = scale.x(place)
        anchor = "start" if number == 0 else "end" if x > WIDTH - RIGHT - 24 else "middle"
        word = f"{label} {unit}" if number == 0 else label
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{escape(word)}</text>')
    return "".join(parts)


def _line(line: Line, scale: Scale, colour: int) -> str:
    parts = []
    if line.low is not None and line.high is not None and len(line.mean.x) > 1:
        keep = _thinned(len(line.mean.x))
        edge = [(line.mean.x[keep], line.high[keep]), (line.mean.x[keep][::-1], line.low[keep][::-1])]
        parts.append(f'<path class="band" d="{"".join(_path(x, y, scale) for x, y in edge).replace("L", "M", 1)}Z"/>')
    several = len(line.seeds) > 1
    parts += [_stroke(curve, scale, "seed" if several else "mean") for _, curve in line.seeds]
    if several and len(line.mean.x):
        parts.append(_stroke(line.mean, scale, "mean"))
    return f'<g class="c{colour}"><title>{escape(line.label)}</title>{"".join(parts)}</g>'


def _stroke(curve: Curve, scale: Scale, kind: str) -> str:
    """A curve as a line; a lone point as a short stroke, which round ends make a dot."""
    if len(curve.x) == 1:
        return f'<path class="dot" d="{_path(curve.x, curve.y, scale).replace("L", "M")}h0.1"/>'
    keep = _thinned(len(curve.x))
    return f'<path class="{kind}" d="{_path(curve.x[keep], curve.y[keep], scale).replace("L", "M", 1)}"/>'


def _path(x: Floats, y: Floats, scale: Scale) -> str:
    points = zip(np.atleast_1d(scale.x(x)), np.atleast_1d(scale.y(y)), strict=True)
    return "".join(f"L{a:.1f} {b:.1f}" for a, b in points)


def _thinned(count: int) -> np.ndarray:
    """Which points are drawn: all of them, or evenly spaced ones with the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(count, MOST_POINTS)).astype(int))
