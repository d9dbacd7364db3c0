from __future__ import annotations

import numpy as np
import pytest

from operant.report.intervals import AT_ONCE, mean_intervals
from operant.report.stats import CONFIDENCE, mean_band, mean_interval, rng, tails


def test_many_groups_at_once_have_the_numbers_of_each_by_itself() -> None:
    rng = np.random.default_rng(1)
    groups = [rng.normal(size=size).tolist() for size in (1, 2, 5, 3, 5, 1)] + [[0.5] * 4] * (AT_ONCE + 1)
    for group, found in zip(groups, mean_intervals(groups), strict=True):
        alone = mean_interval(group)
        assert found.n == alone.n
        assert np.allclose([found.point], [alone.point])
        assert (found.low is None) == (alone.low is None)
        if alone.low is not None:
            assert (found.low, found.high) == pytest.approx((alone.low, alone.high))


def test_no_groups_have_no_intervals() -> None:
    assert mean_intervals([]) == []


@pytest.mark.parametrize("seeds", [2, 3, 5, 6, 7])
def test_distinct_resamples_give_the_quantiles_of_all_of_them(seeds: int) -> None:
    """Few seeds can be drawn in few ways, which are counted; the numbers are those of 1,000 plain resamples."""
    table = np.random.default_rng(seeds).normal(size=(seeds, 9))
    table[:, 3] = table[0, 3]
    counts = rng().multinomial(seeds, np.full(seeds, 1 / seeds), size=1000)
    expected = np.quantile(counts @ table / seeds, tails(CONFIDENCE), axis=0)
    low, high = mean_band(table, resamples=1000)
    assert np.allclose([low, high], expected)
    assert low[3] == high[3]
