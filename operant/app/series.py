"""The lines of a chart as numbers: mean and interval over seeds, few enough points to draw, and only the new ones.

Where there are more positions than `POINTS`, rows are put together in buckets of one width for the whole chart: a
seed's value is the mean of its rows in a bucket, and the extremes go with it. The width is a power of two and buckets
begin at its multiples, so that a run which grows changes its last bucket only, until the width doubles.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from operant.app.columns import MetricFile, MetricFiles
from operant.app.lines import Line
from operant.report.align import Curve, align
from operant.report.stats import Floats, mean_band

POINTS, FEWER_POINTS = 400, 100
MANY_LINES = 40
"""From so many lines on, nobody can tell bands apart: they are left out, and lines have fewer points."""
RESAMPLES = 1000
MOST_KEPT = 4096
BUDGET_SECONDS = 0.5


@dataclass(frozen=True)
class Drawn:
    """A line at its positions; NaN where it has no value. `lowest` and `highest` are extremes inside buckets."""

    x: Floats
    mean: Floats
    low: Floats | None
    high: Floats | None
    lowest: Floats | None
    highest: Floats | None
    seeds: Floats


class Charts:
    """Computes lines and keeps them until their files change (final). Threads take turns."""

    def __init__(self, files: MetricFiles) -> None:
        self.files = files
        self._kept: OrderedDict[tuple[object, ...], Drawn] = OrderedDict()
        self._turn = threading.Lock()

    def draw(
        self, lines: Sequence[Line], metric: str, x: str, have: Mapping[str, float], form: Any, seeds: bool
    ) -> dict[str, Any]:
        """The points of each line from the position `have` on, where they still have the form that it is of.

        The form is the width of buckets, and whether there are bands.

        `pending` counts lines whose files were not read in time: ask again for them.
        """
        with self._turn:  # while one thread reads a file on, no other may look at its columns
            opened = self._open(lines)
            curves = [file.curve(metric, x) for _, files in opened for file in files]
            bands = len(lines) < MANY_LINES
            bucket = bucket_width(curves, POINTS if bands else FEWER_POINTS)
            drawn = [self._line(files, metric, x, bucket, bands) for _, files in opened]
        kept = have if form == [bucket, bands] else {}
        return {
            "form": [bucket, bands],
            "rows": sum(file.rows for _, files in opened for file in files),
            "pending": len(lines) - len(opened),
            "lines": [
                _as_dict(line, each, kept.get(line.key), seeds) for (line, _), each in zip(opened, drawn, strict=True)
            ],
        }

    def _open(self, lines: Sequence[Line]) -> list[tuple[Line, list[MetricFile]]]:
        """The first lines with their files up to date: at least one, and as many as can be read in time."""
        opened: list[tuple[Line, list[MetricFile]]] = []
        deadline = time.monotonic() + BUDGET_SECONDS
        for line in lines:
            if opened and time.monotonic() > deadline:
                break
            opened.append((line, [self.files.open(file) for file in line.files]))
        return opened

    def _line(self, files: Sequence[MetricFile], metric: str, x: str, width: float, bands: bool) -> Drawn:
        key = (*((file.path, file.version) for file in files), metric, x, width, bands)
        if key not in self._kept:
            self._kept[key] = draw_line([file.curve(metric, x) for file in files], width, bands)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]


def bucket_width(curves: Sequence[Curve], points: int = POINTS) -> float:
    """0 where all positions can be drawn, else the power of two that leaves at most so many buckets."""
    known = [curve.x for curve in curves if len(curve.x)]
    if not known or len(np.unique(np.concatenate(known))) <= points:
        return 0.0
    return 2.0 ** math.ceil(math.log2(max(float(x[-1]) for x in known) / points))


def draw_line(curves: Sequence[Curve], width: float, bands: bool = True) -> Drawn:
    """The mean over seeds with its interval where every seed has a value, as in `operant plot`."""
    known = [curve for curve in curves if len(curve.x)]
    buckets = [_bucketed(curve, width) for curve in known]
    aligned = align([mean for mean, _, _ in buckets])
    empty = np.full(len(aligned.x), np.nan)
    mean, low, high = empty.copy(), None, None
    shared = aligned.shared
    if known and shared.any():
        mean[shared] = aligned.values[:, shared].mean(axis=0)
    if bands and len(known) > 1 and shared.any():
        low, high = empty.copy(), empty.copy()
        low[shared], high[shared] = mean_band(aligned.values[:, shared], resamples=RESAMPLES)
    lowest = highest = None
    if bands and width and len(known) == 1:
        lowest, highest = buckets[0][1], buckets[0][2]
    return Drawn(aligned.x, mean, low, high, lowest, highest, aligned.values)


def _bucketed(curve: Curve, width: float) -> tuple[Curve, Floats, Floats]:
    """A seed's means at the middles of its buckets, and their extremes."""
    if not width:
        return curve, curve.y, curve.y
    numbers = np.floor(curve.x / width)
    starts = np.flatnonzero(np.diff(numbers, prepend=-1.0))
    counts = np.diff(np.append(starts, len(numbers)))
    means = np.add.reduceat(curve.y, starts) / counts
    middles = (numbers[starts] + 0.5) * width
    return Curve(middles, means), np.minimum.reduceat(curve.y, starts), np.maximum.reduceat(curve.y, starts)


def _as_dict(line: Line, drawn: Drawn, begin: float | None, seeds: bool) -> dict[str, Any]:
    new = slice(int(np.searchsorted(drawn.x, begin)) if begin is not None else 0, None)
    told = {"mean": drawn.mean, "low": drawn.low, "high": drawn.high, "min": drawn.lowest, "max": drawn.highest}
    return {
        "key": line.key,
        "label": line.label,
        "runs": line.runs,
        "seeds": len(drawn.seeds),
        "x": drawn.x[new].tolist(),
        **{name: None if values is None else _short(values[new]) for name, values in told.items()},
        "each": [_short(values[new]) for values in drawn.seeds] if seeds and len(drawn.seeds) > 1 else [],
    }


def _short(values: Floats) -> list[float | None]:
    """Six digits are more than a screen shows; what is not known is null."""
    return [None if value != value else float(f"{value:.6g}") for value in values.tolist()]
