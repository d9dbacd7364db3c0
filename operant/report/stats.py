"""A score with its uncertainty: the mean over seeds or episodes and its interval.

All intervals over seeds are percentile bootstraps with a fixed random stream, so the same run directory always prints
the same numbers. One seed has no interval; it is said, never invented. With few seeds a percentile interval is
somewhat too narrow, which is why verdicts do not rest on intervals alone (see `improvement`).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from operant.report.formatting import digits_for

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
RESAMPLES = 10_000
EPISODE_RESAMPLES = 1000  # there are many more episodes than seeds
MANY = 200
FEW_SEEDS = 6
NO_INTERVAL = "one seed, no interval"


@dataclass(frozen=True)
class Estimate:
    """A point with its interval over `n` seeds; `low` and `high` are None when `n` is 1."""

    point: float
    low: float | None
    high: float | None
    n: int

    def as_dict(self) -> dict[str, Any]:
        """The same numbers for `--json`."""
        return asdict(self)

    def __str__(self) -> str:
        return self.text()

    def text(self, digits: int | None = None) -> str:
        """`498.6 [497.1, 500.0]`, or the point and the reason why there is no interval."""
        if self.low is None or self.high is None:
            return f"{self.point:,.{digits_for(self.point) if digits is None else digits}f} ({NO_INTERVAL})"
        shown = digits_for(self.point, self.low, self.high) if digits is None else digits
        return f"{self.point:,.{shown}f} [{self.low:,.{shown}f}, {self.high:,.{shown}f}]"


def mean_interval(values: ArrayLike, *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES) -> Estimate:
    """Mean over seeds with its bootstrap interval. Raises `ValueError` on no values or a non-finite one."""
    scores = finite(values, dimensions=1)
    point = float(scores.mean())
    if len(scores) == 1:
        return Estimate(point, None, None, 1)
    low, high = mean_band(scores[:, None], confidence=confidence, resamples=resamples)
    return Estimate(point, float(low[0]), float(high[0]), len(scores))


def mean_band(
    values: ArrayLike, *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES
) -> tuple[Floats, Floats]:
    """Lower and upper interval ends of the mean over seeds, for each column of `values[seed, column]`.

    The same resampled seeds serve every column, so a band is made of whole curves.
    """
    table = finite(values, dimensions=2)
    seeds = len(table)
    counts, times = _distinct(seeds, resamples) if seeds <= FEW_SEEDS else (_drawn(seeds, resamples), None)
    centre = table.mean(axis=0)
    # Deviations rather than values: equal seeds then give a band of exactly zero width.
    means = centre + counts @ (table - centre) / seeds
    if times is None:
        low, high = np.quantile(means, tails(confidence), axis=0)
    else:
        low, high = (_repeated_quantile(means, times, share) for share in tails(confidence))
    return low, high


def _drawn(seeds: int, resamples: int) -> NDArray[np.int64]:
    """`[resample, seed]`: how often each seed is drawn."""
    return rng().multinomial(seeds, np.full(seeds, 1 / seeds), size=resamples)


@lru_cache(maxsize=16)
def _distinct(seeds: int, resamples: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same without repetitions, and how many times each came: few seeds can be drawn in few ways."""
    return np.unique(_drawn(seeds, resamples), axis=0, return_counts=True)


def _repeated_quantile(values: Floats, times: NDArray[np.int64], share: float) -> Floats:
    """`np.quantile` of each column of values that occur so many times, without repeating them."""
    order = values.argsort(axis=0)
    ranked, reached = np.take_along_axis(values, order, axis=0), times[order].cumsum(axis=0)
    place = share * (times.sum() - 1)
    below, above = (
        np.take_along_axis(ranked, (reached <= rank).sum(axis=0)[None], axis=0)[0]
        for rank in (math.floor(place), math.ceil(place))
    )
    return below + (above - below) * (place % 1)


def episode_interval(values: ArrayLike) -> Estimate:
    """Mean over the episodes of one policy with its interval: that of a rate where all values are 0 or 1."""
    found = finite(values, dimensions=1)
    if len(found) == 1 or not np.isin(found, (0.0, 1.0)).all():
        return mean_interval(found, resamples=EPISODE_RESAMPLES)
    return rate_interval(int(found.sum()), len(found))


def rate_interval(times: int, count: int) -> Estimate:
    """How often something happens that happened so many times in `count`, with Wilson's interval (1927).

    It is right where a bootstrap fails, at rates near 0 and 1: of no win in a thousand games it still says how often
    one may be expected at most.
    """
    rate, z = times / count, NormalDist().inv_cdf(tails(CONFIDENCE)[1])
    centre = (rate + z**2 / (2 * count)) / (1 + z**2 / count)
    reach = z / (1 + z**2 / count) * math.sqrt(rate * (1 - rate) / count + z**2 / (4 * count**2))
    # At 0 and at 1 the two terms are equal but for rounding.
    low, high = (0.0 if rate == 0 else centre - reach), (1.0 if rate == 1 else centre + reach)
    return Estimate(rate, low, high, count)


def quick_interval(values: ArrayLike) -> Estimate:
    """`episode_interval`, but from `MANY` episodes on by the normal formula, to which a bootstrap of so many comes.

    For tables and drawings that are made while a person waits. Rates keep Wilson's interval, which is as quick.
    """
    found = finite(values, dimensions=1)
    if len(found) < MANY or np.isin(found, (0.0, 1.0)).all():
        return episode_interval(found)
    point, z = float(found.mean()), NormalDist().inv_cdf(tails(CONFIDENCE)[1])
    reach = z * float(found.std(ddof=1)) / math.sqrt(len(found))
    return Estimate(point, point - reach, point + reach, len(found))


def finite(values: ArrayLike, dimensions: int | None = None) -> Floats:
    """A float64 array, or `ValueError`: a missing score must be left out by the caller, knowingly."""
    array = np.asarray(values, dtype=np.float64)
    if dimensions is not None and array.ndim != dimensions:
        raise ValueError(f"expected {dimensions} dimensions, got {array.ndim}")
    if array.size == 0:
        raise ValueError("no scores: there is nothing to estimate")
    if not np.isfinite(array).all():
        raise ValueError("a score is not finite")
    return array


def tails(confidence: float) -> tuple[float, float]:
    """Quantiles that leave out `1 - confidence`, half at each end."""
    return (1 - confidence) / 2, (1 + confidence) / 2


def rng() -> np.random.Generator:
    """The same stream for every estimate: a report must not change when it is printed again."""
    return np.random.default_rng(0)
