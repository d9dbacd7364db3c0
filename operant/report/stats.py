"""Scores with their uncertainty: intervals over seeds, aggregates over tasks, and verdicts.

All intervals are percentile bootstraps over seeds with a fixed random stream, so the same run
directory always prints the same numbers. One seed has no interval; it is said, never invented.
With few seeds a percentile interval is somewhat too narrow, so no verdict is given below the number
of seeds at which any ordering of the scores could be distinguished from chance (`MOST_CHANCE`).

References: Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice"
(2021), for the interquartile mean, the stratified bootstrap and the probability of improvement.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from operant.report.formatting import digits_for

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
NO_DIFFERENCE = "no clear difference"
RESAMPLES = 10_000
EPISODE_RESAMPLES = 1000  # there are many more episodes than seeds
MANY = 200
MOST_CHANCE = 0.05
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


@dataclass(frozen=True)
class Comparison:
    """How probable it is that a run of A beats a run of B, and what may be said about it."""

    probability: Estimate
    verdict: str

    def as_dict(self) -> dict[str, Any]:
        """The same facts for `--json`."""
        return {"probability": self.probability.as_dict(), "verdict": self.verdict}

    def text(self) -> str:
        """One line: the verdict, then the probability it rests on."""
        return f"{self.verdict}; A beats B with probability {self.probability.text(2)}"


def mean_interval(values: ArrayLike, *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES) -> Estimate:
    """Mean over seeds with its bootstrap interval. Raises `ValueError` on no values or a non-finite one."""
    scores = _finite(values, dimensions=1)
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
    table = _finite(values, dimensions=2)
    seeds = len(table)
    counts = _rng().multinomial(seeds, np.full(seeds, 1 / seeds), size=resamples)
    centre = table.mean(axis=0)
    # Deviations rather than values: equal seeds then give a band of exactly zero width.
    means = centre + counts @ (table - centre) / seeds
    low, high = np.quantile(means, _tails(confidence), axis=0)
    return low, high


def episode_interval(values: ArrayLike) -> Estimate:
    """Mean over the episodes of one policy with its interval: Wilson's (1927) where all values are 0 or 1.

    Wilson's interval is right where a bootstrap fails, at rates near 0 and 1: of no win in a
    thousand games it still says how often one may be expected at most.
    """
    found = _finite(values, dimensions=1)
    if len(found) == 1 or not np.isin(found, (0.0, 1.0)).all():
        return mean_interval(found, resamples=EPISODE_RESAMPLES)
    count, rate, z = len(found), float(found.mean()), NormalDist().inv_cdf(_tails(CONFIDENCE)[1])
    centre = (rate + z**2 / (2 * count)) / (1 + z**2 / count)
    reach = z / (1 + z**2 / count) * math.sqrt(rate * (1 - rate) / count + z**2 / (4 * count**2))
    # At 0 and at 1 the two terms are equal but for rounding.
    low, high = (0.0 if rate == 0 else centre - reach), (1.0 if rate == 1 else centre + reach)
    return Estimate(rate, low, high, count)


def quick_interval(values: ArrayLike) -> Estimate:
    """`episode_interval`, but from `MANY` episodes on by the normal formula, to which a bootstrap of so many comes.

    For tables and drawings that are made while a person waits. Rates keep Wilson's interval, which is as quick.
    """
    found = _finite(values, dimensions=1)
    if len(found) < MANY or np.isin(found, (0.0, 1.0)).all():
        return episode_interval(found)
    point, z = float(found.mean()), NormalDist().inv_cdf(_tails(CONFIDENCE)[1])
    reach = z * float(found.std(ddof=1)) / math.sqrt(len(found))
    return Estimate(point, point - reach, point + reach, len(found))


def iqm(scores: ArrayLike) -> float:
    """Interquartile mean: the mean of what is left after a quarter of all scores is cut from each end."""
    return float(_iqm_last(_finite(scores).reshape(-1)))


def iqm_interval(scores: ArrayLike, *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES) -> Estimate:
    """Interquartile mean of `scores[seed, task]`; seeds are resampled within each task (stratified)."""
    table = _by_task(scores)
    point = iqm(table)
    if len(table) == 1:
        return Estimate(point, None, None, 1)
    draws = _resampled(table, resamples, _rng())
    low, high = np.quantile(_iqm_last(draws.reshape(resamples, -1)), _tails(confidence))
    return Estimate(point, float(low), float(high), len(table))


def probability_of_improvement(
    a: ArrayLike, b: ArrayLike, *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES
) -> Comparison:
    """P(A > B) for scores `[seed]` or `[seed, task]`, ties counting one half, averaged over tasks.

    "A better" only when the interval excludes 0.5 and there are enough seeds.
    `n` of the estimate is the smaller number of seeds.
    """
    first, second = _by_task(a), _by_task(b)
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"A has {first.shape[1]} tasks and B has {second.shape[1]}; compare them on the same tasks")
    point = float(_wins(first[None], second[None])[0])
    fewest = min(len(first), len(second))
    if fewest == 1:
        return Comparison(Estimate(point, None, None, 1), "cannot tell: one seed, no interval")
    rng = _rng()
    draws = _wins(_resampled(first, resamples, rng), _resampled(second, resamples, rng))
    low, high = (float(end) for end in np.quantile(draws, _tails(confidence)))
    return Comparison(Estimate(point, low, high, fewest), _verdict(low, high, len(first), len(second), first.shape[1]))


def seeds_needed(
    values: ArrayLike, difference: float, *, confidence: float = CONFIDENCE, power: float = 0.8
) -> int | None:
    """Seeds per side to see a `difference` of means in scores that spread like `values`.

    Two-sided two-sample test by the normal formula with Guenther's (1981) small-sample term:
    n = 2 ((z_a + z_b) sd / difference)^2 + z_a^2 / 4. None when the spread is unknown (one value) or
    the difference is zero; never below 2, because one seed shows no spread.
    """
    scores = _finite(values, dimensions=1)
    if len(scores) < 2 or difference == 0:
        return None
    z_confidence = NormalDist().inv_cdf(0.5 + confidence / 2)
    z_power = NormalDist().inv_cdf(power)
    effect = difference / float(scores.std(ddof=1)) if scores.std() > 0 else math.inf
    return max(2, math.ceil(2 * ((z_confidence + z_power) / effect) ** 2 + z_confidence**2 / 4))


def _verdict(low: float, high: float, seeds_a: int, seeds_b: int, tasks: int) -> str:
    """The strongest words the numbers allow."""
    if math.comb(seeds_a + seeds_b, seeds_a) ** tasks * MOST_CHANCE < 2:
        return f"cannot tell: {seeds_a} against {seeds_b} seeds are too few for any verdict"
    if low > 0.5:
        return "A better"
    if high < 0.5:
        return "B better"
    return NO_DIFFERENCE


def _wins(a: Floats, b: Floats) -> Floats:
    """Share of pairs that A wins, for each draw of `a[draw, seed, task]` against `b[draw, seed, task]`."""
    pairs = np.sign(a[:, :, None, :] - b[:, None, :, :])
    return (pairs.mean(axis=(1, 2, 3)) + 1) / 2


def _iqm_last(scores: Floats) -> Floats:
    """Interquartile mean along the last axis."""
    ordered = np.sort(scores, axis=-1)
    cut = ordered.shape[-1] // 4
    return ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1)


def _resampled(table: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """`[resample, seed, task]`: seeds drawn with replacement, independently within each task."""
    seeds, tasks = table.shape
    chosen = rng.integers(0, seeds, size=(resamples, seeds, tasks))
    return np.take_along_axis(table[None], chosen, axis=1)


def _by_task(scores: ArrayLike) -> Floats:
    """Scores as `[seed, task]`; a plain list of seeds is one task."""
    table = _finite(scores)
    return table[:, None] if table.ndim == 1 else _finite(table, dimensions=2)


def _finite(values: ArrayLike, dimensions: int | None = None) -> Floats:
    """A float64 array, or `ValueError`: a missing score must be left out by the caller, knowingly."""
    array = np.asarray(values, dtype=np.float64)
    if dimensions is not None and array.ndim != dimensions:
        raise ValueError(f"expected {dimensions} dimensions, got {array.ndim}")
    if array.size == 0:
        raise ValueError("no scores: there is nothing to estimate")
    if not np.isfinite(array).all():
        raise ValueError("a score is not finite")
    return array


def _tails(confidence: float) -> tuple[float, float]:
    """Quantiles that leave out `1 - confidence`, half at each end."""
    return (1 - confidence) / 2, (1 + confidence) / 2


def _rng() -> np.random.Generator:
    """The same stream for every estimate: a report must not change when it is printed again."""
    return np.random.default_rng(0)
