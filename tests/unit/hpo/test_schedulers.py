"""Decisions from the table of jobs alone."""

from __future__ import annotations

from random import Random

import pytest

from operant.hpo.schedulers import OVER, WAIT, Job, Plan, Step, next_step, promotable


def _score(trial: int, rung: int) -> float:
    return float((7 * trial) % 16 + rung)


def _run(plan: Plan, rng: Random) -> list[tuple]:
    """A whole search in which running jobs end in random order; returns its decisions."""
    jobs: list[Job] = []
    while True:
        running = [job for job in jobs if not job.finished]
        step = next_step(jobs, plan)
        if step == OVER:
            assert not running
            return [(job.trial, job.rung) for job in jobs]
        if isinstance(step, Step) and (not running or rng.random() < 0.5):
            idle = step.trial is None
            jobs.append(Job(len(jobs), step.trial, step.rung, finished=idle))
            continue
        assert running, step
        ended = rng.choice(running)
        done = Job(ended.number, ended.trial, ended.rung, True, (_score(ended.trial or 0, ended.rung),))
        jobs[ended.number] = done


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_the_order_in_which_jobs_end_changes_no_decision(workers: int) -> None:
    plan = Plan(16, (10, 40, 160), workers, "asha", 4)
    found = [_run(plan, Random(seed)) for seed in range(20)]
    assert all(each == found[0] for each in found)


def test_every_trial_is_begun_once_and_a_quarter_is_promoted() -> None:
    decisions = _run(Plan(16, (10, 40, 160), 1, "asha", 4), Random(0))
    at = [[trial for trial, rung in decisions if rung == wanted and trial is not None] for wanted in range(3)]
    assert sorted(at[0]) == list(range(16))
    best = sorted(range(16), key=lambda trial: -_score(trial, 0))[:4]
    assert set(best) <= set(at[1])
    assert len(at[1]) <= 7
    assert len(at[2]) >= 1


def test_without_rungs_trials_are_begun_in_turn() -> None:
    assert _run(Plan(3, (100,), 1), Random(0)) == [(0, 0), (1, 0), (2, 0)]


def test_a_decision_waits_for_the_result_that_it_needs() -> None:
    plan = Plan(9, (10, 30), 2, "asha", 3)
    assert next_step([Job(0, 0)], plan) == Step(1)
    assert next_step([Job(0, 0), Job(1, 1, finished=True, scores=(1.0,))], plan) == WAIT


def test_more_trials_go_on_from_the_results_so_far() -> None:
    jobs = [Job(n, n, 0, True, (float(n),)) for n in range(2)]
    assert next_step(jobs, Plan(2, (10,), 1)) == OVER
    assert next_step(jobs, Plan(3, (10,), 1)) == Step(2)


def test_asha_promotes_the_best_share_and_the_earlier_of_equals() -> None:
    results = {0: (1.0,), 1: (3.0,), 2: (3.0,), 3: (2.0,)}
    assert promotable(results, "asha", 4) == [1]
    assert promotable(results, "asha", 2) == [1, 2]


def test_a_failed_trial_counts_and_is_never_promoted() -> None:
    assert promotable({0: (), 1: (), 2: (1.0,)}, "asha", 3) == [2]
    assert promotable({0: (), 1: (), 2: ()}, "asha", 3) == []


def test_a_trial_whose_interval_reaches_the_cut_is_not_stopped() -> None:
    sure = {0: (10.0, 10.0, 10.0), 1: (9.0, 9.0, 9.0), 2: (1.0, 1.0, 1.0)}
    assert promotable(sure, "asha", 3) == [0]
    unsure = {**sure, 1: (4.0, 9.0, 14.0)}
    assert promotable(unsure, "asha", 3) == [0, 1]


def test_the_median_rule_stops_what_is_below_it() -> None:
    results = {0: (5.0,), 1: (1.0,), 2: (3.0,)}
    assert promotable(results, "median", 3) == [0, 2]
    assert promotable({0: (5.0,), 1: (1.0,)}, "median", 3) == [0, 1]
