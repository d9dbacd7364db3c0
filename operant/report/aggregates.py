"""One number for many tasks: interquartile mean, mean, median and optimality gap of normalized scores.

The interquartile mean is the one to report: the mean is moved by a single task with large scores, the median does not
move when nearly half of the tasks change, and its interval is wide. The optimality gap is how much is missing, on
average, to the score 1; smaller is better.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from operant.report.bootstrap import Scores, Statistic, by_task, stratified_interval
from operant.report.stats import CONFIDENCE, RESAMPLES, Estimate, Floats


def iqm(scores: Scores) -> float:
    """Interquartile mean: the mean of what is left after a quarter of all scores is cut from each end."""
    return float(_iqm(by_task(scores)))


def iqm_interval(scores: Scores, *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES) -> Estimate:
    """Interquartile mean over all seeds of all tasks with its stratified bootstrap interval."""
    return stratified_interval(scores, _iqm, confidence=confidence, resamples=resamples)


def aggregates(scores: Scores, *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES) -> dict[str, Estimate]:
    """Every aggregate by name, each with its interval."""
    return {
        name: stratified_interval(scores, statistic, confidence=confidence, resamples=resamples)
        for name, statistic in AGGREGATES.items()
    }


def _iqm(tasks: Sequence[Floats]) -> Floats:
    ordered = np.sort(np.concatenate(tasks, axis=-1), axis=-1)
    cut = ordered.shape[-1] // 4
    return ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1)


def _mean(tasks: Sequence[Floats]) -> Floats:
    """Mean over tasks of the mean over seeds."""
    return np.mean([seeds.mean(axis=-1) for seeds in tasks], axis=0)


def _median(tasks: Sequence[Floats]) -> Floats:
    """Median over tasks of the mean over seeds."""
    return np.median([seeds.mean(axis=-1) for seeds in tasks], axis=0)


def _optimality_gap(tasks: Sequence[Floats]) -> Floats:
    return 1.0 - _mean([np.minimum(seeds, 1.0) for seeds in tasks])


AGGREGATES: dict[str, Statistic] = {
    "iqm": _iqm,
    "mean": _mean,
    "median": _median,
    "optimality_gap": _optimality_gap,
}
