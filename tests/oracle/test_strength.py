"""SLM-Lab's metrics against a hand example in exact fractions and a loop over the documented formulas."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest

from operant.report.slm_metrics import ReturnSeries, TrialMetrics, trial_metrics


def series(returns: list[float], frames: list[int] | None = None, updates: list[int] | None = None) -> ReturnSeries:
    count = range(1, len(returns) + 1)
    frames = frames or [100 * i for i in count]
    updates = updates or [10 * i for i in count]
    return ReturnSeries(np.array(frames, float), np.array(updates, float), np.array(returns, float))


def documented(returns: list[list[float]], frames: list[int], updates: list[int], random: float) -> dict[str, float]:
    """The formulas as written, session by session, by plain loops."""
    strengths = [[value - random for value in session] for session in returns]
    rows = range(len(frames))

    def efficiency(session: list[float], clock: list[int]) -> float:
        used = [i for i in rows if clock[i] > 0]
        return sum(session[i] / clock[i] for i in used) / sum(1 / clock[i] for i in used)

    def stability(session: list[float]) -> float:
        drops = sum(min(session[i + 1] - session[i], 0) for i in rows[:-1])
        return 1 - abs(drops / sum(session[:-1]))

    at = [[session[i] for session in strengths] for i in rows]
    spread = sum(statistics.stdev(values) for values in at)
    return {
        "total_reward_ma": statistics.fmean(statistics.fmean(session[-100:]) for session in returns),
        "strength": statistics.fmean(statistics.fmean(session) for session in strengths),
        "max_strength": statistics.fmean(max(session) for session in strengths),
        "final_strength": statistics.fmean(session[-1] for session in strengths),
        "sample_efficiency": statistics.fmean(efficiency(session, frames) for session in strengths),
        "training_efficiency": statistics.fmean(efficiency(session, updates) for session in strengths),
        "stability": statistics.fmean(stability(session) for session in strengths),
        "consistency": 1 - 2 * spread / sum(statistics.fmean(values) for values in at),
    }


class TestHandExample:
    """Returns 30, 70, 50, 110 and 50, 70, 90, 110 over a random score of 10."""

    first = series([30, 70, 50, 110])
    second = series([50, 70, 90, 110])

    def test_one_session(self) -> None:
        metrics = trial_metrics([self.first], 10.0)
        # Strengths 20, 60, 40, 100 at 100, 200, 300, 400 frames.
        efficiency = (Fraction(20) + Fraction(60, 2) + Fraction(40, 3) + Fraction(100, 4)) / Fraction(25, 12)
        assert metrics.frame == 400
        assert metrics.total_reward_ma == 65
        assert metrics.strength == 55
        assert metrics.max_strength == 100
        assert metrics.final_strength == 100
        assert metrics.sample_efficiency == pytest.approx(float(efficiency), rel=1e-14)
        assert metrics.training_efficiency == pytest.approx(float(efficiency), rel=1e-14)
        assert metrics.stability == pytest.approx(1 - 20 / 120, rel=1e-14)
        assert metrics.consistency is None

    def test_two_sessions(self) -> None:
        metrics = trial_metrics([self.first, self.second], 10.0)
        assert metrics.strength == (55 + 70) / 2
        assert metrics.stability == pytest.approx((1 - 20 / 120 + 1) / 2, rel=1e-14)
        # Deviations of two values are |difference| / sqrt 2: 20, 0, 40, 0; means 30, 60, 60, 100.
        assert metrics.consistency == pytest.approx(1 - 2 * (60 / math.sqrt(2)) / 250, rel=1e-14)

    def test_line(self) -> None:
        assert trial_metrics([self.first], 10.0).line() == (
            "trial_metrics: frame:400 | total_reward_ma:65 | strength:55 | max_strength:100 | final_strength:100 | "
            "sample_efficiency:42.4 | training_efficiency:42.4 | stability:0.833333 | consistency:n/a"
        )

    def test_the_scale_of_efficiency_is_kept(self) -> None:
        """The formula SLM-Lab codes, sum(str / t) / sum(str), would not change when every strength doubles."""
        single = trial_metrics([series([30, 70])], 10.0).sample_efficiency
        double = trial_metrics([series([50, 130])], 10.0).sample_efficiency
        assert single is not None
        assert double == pytest.approx(2 * single)


@pytest.mark.parametrize("seed", range(5))
def test_random_trials_agree_with_the_documented_formulas(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frames = (np.arange(1, 151) * 64).tolist()
    updates = np.maximum(0, np.arange(150) - 5).tolist()
    returns = np.cumsum(rng.normal(1.0, 4.0, size=(4, 150)), axis=1) + 60
    sessions = [series(values.tolist(), frames, updates) for values in returns]
    found = trial_metrics(sessions, -20.0).as_dict()
    expected = documented(returns.tolist(), frames, updates, -20.0)
    assert found.pop("frame") == 150 * 64
    assert list(found) == list(expected)
    assert found == pytest.approx(expected, rel=1e-12)


class TestEdges:
    def test_window_is_the_last_hundred_rows(self) -> None:
        assert trial_metrics([series([0.0] * 50 + [7.0] * 100)], None).total_reward_ma == 7.0

    def test_unknown_random_score_leaves_only_the_return(self) -> None:
        metrics = trial_metrics([series([1.0, 3.0]), series([3.0, 5.0])], None)
        assert metrics == TrialMetrics(200, 3.0, None, None, None, None, None, None, None)

    def test_no_rows_no_values(self) -> None:
        for sessions in ([], [series([])]):
            assert set(trial_metrics(sessions, 1.0).as_dict().values()) == {None}
        assert trial_metrics([], 1.0).line().count("n/a") == 9

    def test_one_row_has_no_stability(self) -> None:
        metrics = trial_metrics([series([30.0])], 10.0)
        assert (metrics.strength, metrics.stability) == (20.0, None)

    def test_worse_than_random_has_no_shares(self) -> None:
        metrics = trial_metrics([series([5.0, 0.0]), series([4.0, 1.0])], 10.0)
        assert metrics.strength == -7.5
        assert metrics.sample_efficiency == pytest.approx((-5 - 10 / 2 - 6 - 9 / 2) / 1.5 / 2)
        assert (metrics.stability, metrics.consistency) == (None, None)

    def test_just_as_good_as_random_divides_by_nothing(self) -> None:
        metrics = trial_metrics([series([10.0, 10.0]), series([10.0, 10.0])], 10.0)
        assert (metrics.strength, metrics.stability, metrics.consistency) == (0.0, None, None)

    def test_a_collapse_may_lose_more_than_was_summed(self) -> None:
        # Strengths 10, 0, 10, 0, ... lose 10 at every second step, and sum to 10 for each of those.
        assert trial_metrics([series([20.0, 10.0, 20.0, 10.0])], 10.0).stability == pytest.approx(0.0)
        assert trial_metrics([series([20.0, -10.0])], 10.0).stability == pytest.approx(-2.0)

    def test_rows_before_the_first_update_do_not_count_for_training(self) -> None:
        metrics = trial_metrics([series([20.0, 40.0, 50.0], updates=[0, 0, 4])], 10.0)
        assert metrics.training_efficiency == 40.0

    def test_never_trained_has_no_training_efficiency(self) -> None:
        session = ReturnSeries(np.array([100.0]), np.array([0.0]), np.array([20.0]))
        metrics = trial_metrics([session], 10.0)
        assert (metrics.sample_efficiency, metrics.training_efficiency) == (10.0, None)

    def test_sessions_are_matched_by_frames(self) -> None:
        late = series([40.0, 60.0], frames=[200, 300])
        metrics = trial_metrics([series([20.0, 40.0, 60.0]), late], 10.0)
        assert metrics.consistency == 1.0
        assert metrics.frame == 300

    def test_a_session_that_died_early_shortens_what_is_compared(self) -> None:
        dead = series([20.0])
        metrics = trial_metrics([series([20.0, 90.0]), dead], 10.0)
        assert (metrics.consistency, metrics.frame) == (1.0, 100)
        assert metrics.stability is None

    def test_sessions_without_a_common_row_have_no_consistency(self) -> None:
        assert trial_metrics([series([20.0], frames=[100]), series([20.0], frames=[150])], 10.0).consistency is None

    def test_sessions_without_rows_are_left_out(self) -> None:
        assert trial_metrics([series([20.0, 30.0]), series([])], 10.0).strength == 15.0
