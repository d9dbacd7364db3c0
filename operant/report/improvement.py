"""Is A better than B: the probability of improvement, a permutation test, and the words that both allow.

The probability of improvement is P(a run of A scores more than a run of B), ties counting one half, averaged over
tasks. Its percentile interval is too narrow with few seeds, so the verdict rests on a permutation test as well: if A
and B were the same, every way of dealing the seeds to the two names would be as likely. That holds for any
distribution of scores, also with ties, outliers or two humps, so a winner is named among equals in at most 5 % of
comparisons. Where several pairs are compared at once, Holm's (1979) step-down keeps this for all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from operant.report.bootstrap import Scores, by_task
from operant.report.stats import CONFIDENCE, RESAMPLES, Estimate, Floats, finite, rng, tails

NO_DIFFERENCE = "no clear difference"
A_BETTER, B_BETTER = "A better", "B better"
CANNOT_TELL = "cannot tell"
MOST_CHANCE = 0.05
MOST_DEALS = 20_000
"""Deals that are all gone through; where there are more, as many are drawn."""


@dataclass(frozen=True)
class Comparison:
    """How probable it is that a run of A beats a run of B, and what may be said about it.

    `p` is of the permutation test, corrected for the number of `comparisons` made at once; `least_p` is what it would
    be of the most uneven scores that so many `seeds` can have.
    """

    probability: Estimate
    p: float
    least_p: float
    seeds: tuple[int, int]
    comparisons: int = 1

    @property
    def verdict(self) -> str:
        """The strongest words that the numbers allow."""
        low, high = self.probability.low, self.probability.high
        if low is None or high is None:
            return f"{CANNOT_TELL}: one seed, no interval"
        if self.too_few_seeds:
            return f"{CANNOT_TELL}: {self.seeds[0]} against {self.seeds[1]} seeds are too few for any verdict"
        if self.p > MOST_CHANCE or low <= 0.5 <= high:
            return NO_DIFFERENCE
        return A_BETTER if low > 0.5 else B_BETTER

    @property
    def too_few_seeds(self) -> bool:
        """Whether no scores whatever would allow a verdict with so few seeds."""
        return self.probability.low is None or self.least_p * self.comparisons > MOST_CHANCE

    def as_dict(self) -> dict[str, Any]:
        """The same facts for `--json`."""
        return {
            "probability": self.probability.as_dict(),
            "p": self.p,
            "comparisons": self.comparisons,
            "verdict": self.verdict,
        }

    def chance(self) -> str:
        """`0.97 [0.88, 1.00]`; where one side wins every pair no resampling can show otherwise, and that is said."""
        if self.probability.low == self.probability.high and self.probability.point in (0.0, 1.0):
            return f"{self.probability.point:.2f} (every pair)"
        return self.probability.text(2)


def probability_of_improvement(
    a: Scores, b: Scores, *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES
) -> Comparison:
    """A against B on the same tasks; `n` of the estimate is the smaller number of seeds."""
    first, second = by_task(a), by_task(b)
    if len(first) != len(second):
        raise ValueError(f"A has {len(first)} tasks and B has {len(second)}; compare them on the same tasks")
    wins = [np.sign(x[:, None] - y[None]) / 2 + 0.5 for x, y in zip(first, second, strict=True)]
    fewest = [min(map(len, side)) for side in (first, second)]
    estimate = _interval(wins, min(fewest), confidence, resamples)
    least_p = 2 / math.prod(math.comb(len(x) + len(y), len(x)) for x, y in zip(first, second, strict=True))
    return Comparison(estimate, permutation_p(first, second), least_p, (fewest[0], fewest[1]))


def corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The same comparisons with p values and verdicts that hold for all of them together (Holm)."""
    count = len(comparisons)
    found, least = list(comparisons), 0.0
    for rank, number in enumerate(sorted(range(count), key=lambda number: comparisons[number].p)):
        least = max(least, min(1.0, comparisons[number].p * (count - rank)))
        found[number] = replace(comparisons[number], p=least, comparisons=count)
    return found


def permutation_p(a: Sequence[Floats], b: Sequence[Floats]) -> float:
    """Two-sided p of the rank sums of A: the share of deals of each task's seeds that are as uneven as the real one."""
    stream, pairs = rng(), list(zip(a, b, strict=True))
    exact = len(pairs) == 1 and math.comb(len(a[0]) + len(b[0]), len(a[0])) <= MOST_DEALS
    drawn, real = np.zeros(1), 0.0
    for x, y in pairs:
        ranks = _midranks(np.concatenate([x, y])) - (len(x) + len(y) + 1) / 2
        deals = every_deal(len(ranks), len(x)) if exact else drawn_deals(len(ranks), len(x), MOST_DEALS, stream)
        drawn = drawn + ranks[deals].sum(axis=1) / (len(x) * len(y))
        real += float(ranks[: len(x)].sum()) / (len(x) * len(y))
    # Sums of the same ranks in another order differ in their last bits.
    as_uneven = np.abs(drawn) >= abs(real) - 1e-9
    # Of drawn deals the real one counts as one more, or p would be too small.
    return float(as_uneven.mean() if exact else (as_uneven.sum() + 1) / (len(drawn) + 1))


def fewest_seeds(comparisons: int = 1) -> int:
    """Seeds for each of two sides with which a verdict is possible at all, among so many comparisons."""
    return next(n for n in range(2, 1000) if 2 / math.comb(2 * n, n) * comparisons <= MOST_CHANCE)


def seeds_needed(
    values: ArrayLike, difference: float, *, confidence: float = CONFIDENCE, power: float = 0.8, comparisons: int = 1
) -> int | None:
    """Seeds for each side to see a `difference` of means in scores that spread like `values`.

    Two-sided two-sample test by the normal formula with Guenther's (1981) small-sample term:
    n = 2 ((z_a + z_b) sd / difference)^2 + z_a^2 / 4, with z_a for 1 - confidence divided by the comparisons. None
    when the spread is unknown (one value) or the difference is zero; never below 2, for one seed shows no spread.
    """
    scores = finite(values, dimensions=1)
    if len(scores) < 2 or difference == 0:
        return None
    z_confidence = NormalDist().inv_cdf(1 - (1 - confidence) / 2 / comparisons)
    z_power = NormalDist().inv_cdf(power)
    effect = difference / float(scores.std(ddof=1)) if scores.std() > 0 else math.inf
    return max(2, math.ceil(2 * ((z_confidence + z_power) / effect) ** 2 + z_confidence**2 / 4))


def _interval(wins: Sequence[Floats], fewest: int, confidence: float, resamples: int) -> Estimate:
    """The share of pairs that A wins, from `wins[seed of A, seed of B]` of each task, seeds of both drawn anew."""
    point = float(np.mean([table.mean() for table in wins]))
    if fewest == 1:
        return Estimate(point, None, None, 1)
    stream, draws = rng(), np.zeros(resamples)
    for table in wins:
        n, m = table.shape
        first = stream.multinomial(n, np.full(n, 1 / n), size=resamples)
        second = stream.multinomial(m, np.full(m, 1 / m), size=resamples)
        draws += ((first @ (table - 0.5)) * second).sum(axis=1) / (n * m)
    low, high = np.quantile(draws / len(wins) + 0.5, tails(confidence))
    return Estimate(point, float(low), float(high), fewest)


@lru_cache(maxsize=8)
def every_deal(total: int, n: int) -> NDArray[np.int64]:
    """`[deal, n]`: each way to choose `n` of the seeds."""
    return np.array(list(combinations(range(total), n)))


def drawn_deals(total: int, n: int, count: int, stream: np.random.Generator) -> NDArray[np.int64]:
    """`[count, n]`: as many ways drawn at random."""
    return stream.permuted(np.tile(np.arange(total), (count, 1)), axis=1)[:, :n]


def _midranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs."""
    ordered = np.sort(values)
    return (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right") + 1) / 2
