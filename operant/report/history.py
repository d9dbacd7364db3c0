"""How the score in each task went as training went on, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from operant.report.episodes import Entry
from operant.report.stats import Estimate, mean_interval, quick_interval
from operant.run.episode import counted_scores

Axis = Literal["frames", "updates", "version"]
AXES: dict[Axis, Callable[[Entry], float | None]] = {
    "frames": lambda entry: entry.frames,
    "updates": lambda entry: entry.updates,
    "version": lambda entry: entry.version,
}
MOST_POINTS = 30


@dataclass(frozen=True)
class Point:
    """The mean score about one moment of training; `episodes` were scored, `errors` were not and count as failed."""

    x: float
    estimate: Estimate
    episodes: int
    errors: int


@dataclass(frozen=True)
class History:
    """One task in one split. `over` says what the intervals are over: seeds, or the episodes of the only one."""

    task: str
    split: str
    axis: Axis
    over: Literal["seeds", "episodes"]
    points: tuple[Point, ...]

    def as_dict(self) -> dict[str, Any]:
        """The same for `--json`."""
        return asdict(self)


def histories(entries: Sequence[Entry], axis: Axis = "frames", most: int = MOST_POINTS) -> list[History]:
    """The history of each task and split, by task; those of `operant eval` are kept apart from training's own.

    Moments are put together where there are more than `most`.

    With several seeds each counts once, whatever the number of its episodes.
    """
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        if AXES[axis](entry) is not None:
            split = f"{entry.split}, evaluation" if entry.from_eval else entry.split
            groups.setdefault((entry.env, split), []).append(entry)
    return [_history(task, split, axis, groups[task, split], most) for task, split in sorted(groups)]


def _history(task: str, split: str, axis: Axis, entries: Sequence[Entry], most: int) -> History:
    moments = np.array([AXES[axis](entry) for entry in entries], dtype=np.float64)
    bins: dict[int, list[int]] = {}
    for place, number in enumerate(_bins(moments, most)):
        bins.setdefault(int(number), []).append(place)
    several = len({entry.session for entry in entries if entry.score is not None}) > 1
    points = [_point(moments[bins[number]], [entries[i] for i in bins[number]], several) for number in sorted(bins)]
    known = tuple(point for point in points if point is not None)
    return History(task, split, axis, "seeds" if several else "episodes", known)


def _bins(moments: np.ndarray, most: int) -> np.ndarray:
    """A number for each moment: its own where they are few, else that of its share of the whole stretch."""
    distinct, places = np.unique(moments, return_inverse=True)
    if len(distinct) <= most:
        return places
    edges = np.linspace(distinct[0], distinct[-1], most + 1)[1:-1]
    return np.searchsorted(edges, moments, side="right")


def _point(moments: np.ndarray, entries: Sequence[Entry], several: bool) -> Point | None:
    by_seed: dict[str, list[float]] = {}
    scores = counted_scores(entry.score for entry in entries)
    if not scores:
        return None
    for entry, score in zip(entries, scores, strict=True):
        by_seed.setdefault(entry.session, []).append(score)
    scored = sum(entry.score is not None for entry in entries)
    estimate = mean_interval(_means(by_seed)) if several else quick_interval(scores)
    return Point(float(moments.mean()), estimate, scored, len(entries) - scored)


def _means(by_seed: Mapping[str, Sequence[float]]) -> list[float]:
    return [float(np.mean(scores)) for scores in by_seed.values()]
