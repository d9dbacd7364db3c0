from __future__ import annotations

import numpy as np
import pytest

from operant.report.intervals import AT_ONCE, mean_intervals
from operant.report.stats import mean_interval


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
