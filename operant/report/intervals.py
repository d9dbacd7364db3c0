"""Intervals of many groups of seeds at once, for lists of runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from operant.report.stats import Estimate, mean_band

AT_ONCE = 64  # groups whose resampled means are held in memory together


def mean_intervals(groups: Sequence[Sequence[float]]) -> list[Estimate]:
    """`mean_interval` of each group, the same numbers; seeds are resampled once for all groups of one size."""
    found: dict[int, Estimate] = {}
    by_size: dict[int, list[int]] = {}
    for place, group in enumerate(groups):
        if len(group) == 1:
            found[place] = Estimate(float(group[0]), None, None, 1)
        else:
            by_size.setdefault(len(group), []).append(place)
    for size, places in by_size.items():
        for start in range(0, len(places), AT_ONCE):
            some = places[start : start + AT_ONCE]
            table = np.array([groups[place] for place in some], dtype=np.float64).T
            low, high = mean_band(table)
            points = table.mean(axis=0)
            for column, place in enumerate(some):
                found[place] = Estimate(float(points[column]), float(low[column]), float(high[column]), size)
    return [found[place] for place in range(len(groups))]
