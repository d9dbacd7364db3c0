"""pass@k: the unbiased estimator against every draw there is, and against the product that its paper computes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from operant.report.task_scores import pass_at_k


@pytest.mark.parametrize("samples", [1, 4, 7])
def test_it_is_the_share_of_draws_that_hold_a_right_answer(samples: int) -> None:
    for right in range(samples + 1):
        answers = [True] * right + [False] * (samples - right)
        for k in range(1, samples + 1):
            draws = [any(draw) for draw in combinations(answers, k)]
            assert pass_at_k(samples, right, k) == pytest.approx(np.mean(draws), abs=1e-12)


def test_it_is_the_product_of_the_paper_where_draws_cannot_be_counted() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        samples = int(rng.integers(1, 600))
        right, k = int(rng.integers(0, samples + 1)), int(rng.integers(1, samples + 1))
        expected = 1.0 if samples - right < k else 1.0 - np.prod(1.0 - k / np.arange(samples - right + 1, samples + 1))
        assert pass_at_k(samples, right, k) == pytest.approx(expected, abs=1e-10)


def test_first_k_would_be_another_number() -> None:
    """One right answer of eight, pass@4: half of all draws of four hold it, wherever it happens to stand."""
    assert pass_at_k(8, 1, 4) == 0.5


@pytest.mark.parametrize(("samples", "right", "k"), [(4, 2, 5), (4, 5, 1), (4, 2, 0), (4, -1, 1)])
def test_what_is_not_defined_is_refused(samples: int, right: int, k: int) -> None:
    with pytest.raises(ValueError, match="is not defined"):
        pass_at_k(samples, right, k)
