"""The stratified bootstrap: seeds are drawn anew within each task, never across tasks.

Scores are given as `[seed]` of one task, as a matrix `[seed, task]`, or by the name of a task where tasks have
different numbers of seeds. A statistic is a function of one array for each task, `[..., seed]`, which it must reduce
to `[...]`; so the same function gives the point and all resamples.

Reference: Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice" (2021).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from operant.report.stats import CONFIDENCE, RESAMPLES, Estimate, Floats, finite, rng, tails

Scores = ArrayLike | Mapping[str, ArrayLike]
Statistic = Callable[[Sequence[Floats]], Floats]


def by_task(scores: Scores) -> list[Floats]:
    """The scores of each task, one value a seed. `ValueError` where a task has none, or one that is not finite."""
    if isinstance(scores, Mapping):
        if not scores:
            raise ValueError("no scores: there is nothing to estimate")
        return [finite(values, dimensions=1) for values in scores.values()]
    table = finite(scores)
    return [table] if table.ndim == 1 else list(finite(table, dimensions=2).T)


def resampled(tasks: Sequence[Floats], resamples: int) -> list[Floats]:
    """For each task `[resample, seed]`: its seeds drawn with replacement, independently of other tasks."""
    stream = rng()
    return [seeds[stream.integers(0, len(seeds), size=(resamples, len(seeds)))] for seeds in tasks]


def stratified_interval(
    scores: Scores, statistic: Statistic, *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES
) -> Estimate:
    """A statistic of all seeds of all tasks with its percentile interval; `n` is the smallest number of seeds.

    Where every task has one seed there is no interval.
    """
    tasks = by_task(scores)
    point, fewest = float(statistic(tasks)), min(len(seeds) for seeds in tasks)
    if all(len(seeds) == 1 for seeds in tasks):
        return Estimate(point, None, None, 1)
    low, high = np.quantile(statistic(resampled(tasks, resamples)), tails(confidence))
    return Estimate(point, float(low), float(high), fewest)
