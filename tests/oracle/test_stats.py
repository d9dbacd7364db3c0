"""Statistics against slow, plain float64 loops and textbook numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from operant.report.aggregates import iqm, iqm_interval
from operant.report.improvement import corrected, permutation_p, probability_of_improvement, seeds_needed
from operant.report.stats import Estimate, episode_interval, mean_band, mean_interval

# Final scores of 40 seeds: operant train ppo_cartpole -s env.max_frame=12000 --sessions 40 --seed 1000
CARTPOLE = [
    449.1, 476.96, 420.36, 256.51, 445.47, 499.44, 399.41, 481.33, 429.45, 418.18, 442.7, 278.53, 498.88, 381.45,
    433.6, 468.49, 230.33, 413.77, 356.65, 485.53, 385.71, 315.18, 276.42, 448.47, 424.5, 448.67, 261.5, 486.2, 453.08,
    490.68, 473.37, 441.09, 365.17, 221.92, 265.56, 278.26, 243.1, 456.92, 351.7, 498.8,
]  # fmt: skip
# How scores of seeds are spread: as measured, with outliers, with seeds that fail, with many ties.
SCORES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "cartpole": lambda rng, n: rng.choice(CARTPOLE, n),
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy_tails": lambda rng, n: rng.standard_cauchy(size=n),
    "bimodal": lambda rng, n: np.where(rng.random(n) < 0.3, rng.normal(20, 5, n), rng.normal(490, 8, n)),
    "solved_or_not": lambda rng, n: np.where(rng.random(n) < 0.5, 500.0, 9.4),
    "log_normal": lambda rng, n: rng.lognormal(0, 1.5, n),
}


def exact_mean_quantiles(values: list[float], shares: tuple[float, float]) -> tuple[float, float]:
    """Quantiles of the bootstrap mean over all n^n equally likely resamples, none left to chance."""
    means = sorted(sum(draw) / len(draw) for draw in itertools.product(values, repeat=len(values)))
    low, high = (means[min(len(means) - 1, math.floor(share * len(means)))] for share in shares)
    return low, high


def loop_iqm(scores: list[float]) -> float:
    ordered = sorted(scores)
    cut = int(0.25 * len(ordered))
    kept = ordered[cut : len(ordered) - cut]
    return sum(kept) / len(kept)


def loop_probability(a: list[list[float]], b: list[list[float]]) -> float:
    """Scores as lists of tasks of seeds."""
    shares = []
    for task_a, task_b in zip(a, b, strict=True):
        wins = [1.0 if x > y else 0.5 if x == y else 0.0 for x in task_a for y in task_b]
        shares.append(sum(wins) / len(wins))
    return sum(shares) / len(shares)


class TestEpisodeInterval:
    @pytest.mark.parametrize(("won", "games"), [(0, 1000), (1, 1000), (30, 90), (7, 7)])
    def test_a_rate_has_the_ends_where_the_score_test_just_rejects(self, won: int, games: int) -> None:
        """Wilson's ends are the rates p with |won / games - p| = z sqrt(p (1 - p) / games)."""
        estimate = episode_interval([1.0] * won + [0.0] * (games - won))
        assert estimate.point == won / games
        assert estimate.n == games
        z = NormalDist().inv_cdf(0.975)
        for end in (estimate.low, estimate.high):
            assert end is not None
            assert abs(won / games - end) == pytest.approx(z * math.sqrt(end * (1 - end) / games), abs=1e-12)

    def test_published_example(self) -> None:
        """Newcombe (1998), table I: 81 of 263 and 0 of 20."""
        assert [round(end or 0.0, 4) for end in ends(episode_interval([1.0] * 81 + [0.0] * 182))] == [0.2553, 0.3662]
        assert [round(end or 0.0, 4) for end in ends(episode_interval([0.0] * 20))] == [0.0, 0.1611]

    def test_other_numbers_are_resampled(self) -> None:
        values = np.random.default_rng(3).normal(10.0, 2.0, size=500)
        low, high = ends(episode_interval(values))
        half = NormalDist().inv_cdf(0.975) * values.std() / math.sqrt(len(values))
        assert low == pytest.approx(values.mean() - half, abs=0.02)
        assert high == pytest.approx(values.mean() + half, abs=0.02)


def ends(estimate: Estimate) -> tuple[float | None, float | None]:
    return estimate.low, estimate.high


class TestMeanInterval:
    def test_agrees_with_the_exact_bootstrap_distribution(self) -> None:
        values = [480.0, 491.5, 500.0, 467.25, 499.0]
        estimate = mean_interval(values)
        low, high = exact_mean_quantiles(values, (0.025, 0.975))
        assert estimate.point == pytest.approx(sum(values) / 5, rel=1e-15)
        # The spread of the values is 13.7; 10,000 resamples leave a few hundredths of it to chance.
        assert estimate.low == pytest.approx(low, abs=0.5)
        assert estimate.high == pytest.approx(high, abs=0.5)
        assert estimate.n == 5

    def test_many_seeds_agree_with_the_normal_interval(self) -> None:
        values = np.random.default_rng(3).normal(10.0, 2.0, size=500)
        estimate = mean_interval(values)
        half = NormalDist().inv_cdf(0.975) * values.std() / math.sqrt(len(values))
        assert estimate.low == pytest.approx(values.mean() - half, abs=0.05 * half)
        assert estimate.high == pytest.approx(values.mean() + half, abs=0.05 * half)

    def test_one_seed_has_no_interval(self) -> None:
        assert mean_interval([7.0]) == Estimate(7.0, None, None, 1)

    def test_equal_seeds_give_an_interval_of_no_width(self) -> None:
        third = 1 / 3
        assert mean_interval([third] * 3) == Estimate(third, third, third, 3)

    def test_is_the_same_each_time(self) -> None:
        assert mean_interval([1.0, 2.0, 4.0]) == mean_interval([1.0, 2.0, 4.0])

    def test_less_confidence_is_narrower(self) -> None:
        wide, narrow = mean_interval(range(8)), mean_interval(range(8), confidence=0.5)
        assert wide.low < narrow.low < narrow.high < wide.high  # type: ignore[operator]

    @pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
    def test_nothing_to_estimate_is_an_error(self, values: list[float]) -> None:
        with pytest.raises(ValueError, match=r"no scores|not finite"):
            mean_interval(values)


class TestMeanBand:
    def test_each_column_is_the_interval_of_that_column(self) -> None:
        table = np.random.default_rng(1).normal(size=(4, 3))
        low, high = mean_band(table)
        for column in range(3):
            alone = mean_interval(table[:, column])
            assert (low[column], high[column]) == pytest.approx((alone.low, alone.high), rel=1e-12)


class TestIqm:
    @pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 41])
    def test_point_agrees_with_a_loop(self, count: int) -> None:
        scores = np.random.default_rng(count).normal(size=count).tolist()
        assert iqm(scores) == pytest.approx(loop_iqm(scores), rel=1e-14)

    def test_hand_example(self) -> None:
        # Of 1..8 two are cut at each end; an outlier among the cut ones changes nothing.
        assert iqm([[1, 2], [3, 4], [5, 6], [7, 8]]) == 4.5
        assert iqm([[1, 2], [3, 4], [5, 6], [7, 8e9]]) == 4.5

    def test_interval_agrees_with_an_independent_stratified_bootstrap(self) -> None:
        table = np.random.default_rng(5).normal(size=(6, 4)) + np.arange(4)
        rng = np.random.default_rng(99)
        draws = []
        for _ in range(4000):
            columns = [[table[rng.integers(6), task] for _ in range(6)] for task in range(4)]
            draws.append(loop_iqm([score for column in columns for score in column]))
        low, high = np.quantile(draws, [0.025, 0.975])
        estimate = iqm_interval(table)
        assert estimate.point == pytest.approx(loop_iqm(table.ravel().tolist()))
        assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=0.04)
        assert estimate.n == 6

    def test_stratified_means_that_tasks_are_never_mixed(self) -> None:
        # Seeds agree perfectly within each task, so resampling inside a task can change nothing.
        estimate = iqm_interval([[0.0, 10.0, 20.0]] * 3)
        assert (estimate.low, estimate.point, estimate.high) == (10.0, 10.0, 10.0)

    def test_one_seed_has_no_interval(self) -> None:
        assert iqm_interval([[1.0, 2.0, 3.0, 4.0]]) == Estimate(2.5, None, None, 1)


class TestProbabilityOfImprovement:
    def test_point_agrees_with_a_loop_and_counts_ties_as_half(self) -> None:
        a = [[1.0, 5.0, 5.0, 9.0], [2.0, 2.0, 3.0, 1.0]]
        b = [[5.0, 4.0, 0.0], [2.0, 2.0, 2.0]]
        found = probability_of_improvement(np.array(a).T, np.array(b).T)
        assert found.probability.point == pytest.approx(loop_probability(a, b), rel=1e-14)
        assert found.probability.n == 3

    def test_interval_agrees_with_an_independent_bootstrap(self) -> None:
        rng = np.random.default_rng(11)
        a, b = rng.normal(0.6, 1, size=7), rng.normal(0, 1, size=6)
        draws = [loop_probability([rng.choice(a, 7).tolist()], [rng.choice(b, 6).tolist()]) for _ in range(4000)]
        low, high = np.quantile(draws, [0.025, 0.975])
        found = probability_of_improvement(a, b).probability
        assert (found.low, found.high) == pytest.approx((low, high), abs=0.03)

    def test_verdicts(self) -> None:
        low, high = np.arange(5.0), np.arange(5.0) + 100
        assert probability_of_improvement(high, low).verdict == "A better"
        assert probability_of_improvement(low, high).verdict == "B better"
        assert probability_of_improvement(low, low).verdict == "no clear difference"
        assert probability_of_improvement(low, low).probability.point == 0.5

    def test_one_seed_gets_no_verdict(self) -> None:
        found = probability_of_improvement([500.0], [1.0, 2.0, 3.0, 4.0])
        assert found.probability == Estimate(1.0, None, None, 1)
        assert found.verdict.startswith("cannot tell: one seed")

    def test_three_seeds_get_no_verdict_however_far_apart(self) -> None:
        # Three against three fall into perfect order by chance once in ten times.
        found = probability_of_improvement([7.0, 8.0, 9.0], [1.0, 2.0, 3.0])
        assert found.verdict == "cannot tell: 3 against 3 seeds are too few for any verdict"
        assert probability_of_improvement([6.0, 7.0, 8.0, 9.0], [1.0, 2.0, 3.0, 4.0]).verdict == "A better"

    @pytest.mark.parametrize(
        "seeds", [4, 5, pytest.param(8, marks=pytest.mark.slow), pytest.param(10, marks=pytest.mark.slow)]
    )
    @pytest.mark.parametrize("name", SCORES)
    def test_equal_learners_are_told_apart_no_more_often_than_chance_allows(self, name: str, seeds: int) -> None:
        """200 trials at the 95 % level: with a chance of 5 % more than 18 winners come once in a hundred times."""
        rng = np.random.default_rng(seeds)
        draws = [(SCORES[name](rng, seeds), SCORES[name](rng, seeds)) for _ in range(200)]
        winners = sum(probability_of_improvement(a, b, resamples=500).verdict.endswith("better") for a, b in draws)
        assert winners <= 18

    def test_many_pairs_together_are_told_apart_no_more_often_either(self) -> None:
        """Ten pairs of five equal learners: a winner anywhere counts."""
        rng, wrong = np.random.default_rng(0), 0
        for _ in range(200):
            sides = [SCORES["cartpole"](rng, 6) for _ in range(5)]
            pairs = [probability_of_improvement(a, b, resamples=500) for a, b in itertools.combinations(sides, 2)]
            wrong += any(pair.verdict.endswith("better") for pair in corrected(pairs))
        assert wrong <= 18

    def test_different_learners_are_told_apart(self) -> None:
        """Two deviations apart with 10 seeds: what is never wrong by never speaking would fail here."""
        rng = np.random.default_rng(1)
        found = [
            probability_of_improvement(rng.normal(2, 1, 10), rng.normal(0, 1, 10), resamples=500) for _ in range(50)
        ]
        assert sum(each.verdict == "A better" for each in found) >= 45

    def test_p_is_that_of_every_deal(self) -> None:
        a, b = [3.0, 5.0, 5.0, 9.0], [1.0, 5.0, 2.0, 2.0, 0.0]
        values, real = a + b, abs(loop_probability([a], [b]) - 0.5)
        deals = list(itertools.combinations(range(9), 4))
        as_uneven = 0
        for deal in deals:
            rest = [values[k] for k in range(9) if k not in deal]
            as_uneven += abs(loop_probability([[values[k] for k in deal]], [rest]) - 0.5) >= real - 1e-12
        assert permutation_p([np.array(a)], [np.array(b)]) == pytest.approx(as_uneven / len(deals), rel=1e-12)

    def test_p_of_many_seeds_agrees_with_the_normal_formula(self) -> None:
        rng = np.random.default_rng(4)
        a, b = rng.normal(0.35, 1, 40), rng.normal(0, 1, 50)
        z = (loop_probability([a.tolist()], [b.tolist()]) - 0.5) / math.sqrt(91 / (12 * 40 * 50))
        assert permutation_p([a], [b]) == pytest.approx(2 * (1 - NormalDist().cdf(abs(z))), abs=0.01)

    def test_different_tasks_cannot_be_compared(self) -> None:
        with pytest.raises(ValueError, match="same tasks"):
            probability_of_improvement(np.zeros((3, 2)), np.zeros((3, 4)))


class TestSeedsNeeded:
    @pytest.mark.parametrize(("effect", "seeds"), [(0.2, 394), (0.5, 64), (0.8, 26), (1.0, 17)])
    def test_agrees_with_the_tables_of_the_t_test(self, effect: float, seeds: int) -> None:
        values = np.array([-1.0, 1.0]) / math.sqrt(2)  # sample deviation 1
        assert seeds_needed(values, effect) == seeds
        assert seeds_needed(values, -effect) == seeds

    def test_a_power_simulation_confirms_it(self) -> None:
        # 17 seeds a side at a difference of one deviation: a two-sided t test (critical value 2.037) finds 80 %.
        rng = np.random.default_rng(2)
        a, b = rng.normal(1, 1, size=(4000, 17)), rng.normal(0, 1, size=(4000, 17))
        spread = np.sqrt((a.var(axis=1, ddof=1) + b.var(axis=1, ddof=1)) / 17)
        found = np.abs(a.mean(axis=1) - b.mean(axis=1)) / spread > 2.037
        assert found.mean() == pytest.approx(0.8, abs=0.03)

    def test_edges(self) -> None:
        assert seeds_needed([5.0], 1.0) is None
        assert seeds_needed([4.0, 5.0], 0.0) is None
        assert seeds_needed([5.0, 5.0], 1.0) == 2
