"""Population-based training as a function of the table of jobs: what must hold for any scores, workers and timing."""

from __future__ import annotations

import math
from random import Random

import pytest

from operant.hpo.schedulers import OVER, Fork, Job, Plan, Step, next_step, replaced

Scores = dict[tuple[int, int], tuple[float, ...]]


class Simulation:
    """A search whose running jobs end in random order, each with the score that `scores` has for it."""

    def __init__(self, plan: Plan, scores: Scores, order: Random) -> None:
        self.jobs: list[Job] = []
        self.forks: dict[int, tuple[Fork, int]] = {}
        while (step := next_step(self.jobs, plan)) != OVER:
            running = [job for job in self.jobs if not job.finished]
            if isinstance(step, Step) and (not running or order.random() < 0.5):
                self._begin(step)
                continue
            assert running, "it waits for a job that nobody trains"
            assert len(running) <= plan.workers
            job = order.choice(running)
            assert job.trial is not None
            self.jobs[job.number] = Job(job.number, job.trial, job.rung, True, scores[job.trial, job.rung])
        assert all(job.finished for job in self.jobs)

    def _begin(self, step: Step) -> None:
        self.jobs.append(Job(len(self.jobs), step.trial, step.rung, finished=step.trial is None))
        if step.fork is not None:
            assert step.trial is not None
            self.forks[step.trial] = (step.fork, step.rung)

    def members(self, rung: int) -> set[int]:
        trained = [job.trial for job in self.jobs if job.trial is not None and job.rung == rung]
        assert len(set(trained)) == len(trained), "a trial was trained twice to the same rung"
        return set(trained)


def _random_scores(rng: Random, sessions: int, failures: float) -> Scores:
    def one() -> tuple[float, ...]:
        return () if rng.random() < failures else tuple(float(rng.randint(0, 9)) for _ in range(sessions))

    return {(trial, rung): one() for trial in range(60) for rung in range(5)}


def _mean(scores: tuple[float, ...]) -> float:
    return sum(scores) / len(scores)


@pytest.mark.parametrize("seed", range(25))
def test_what_holds_for_any_results(seed: int) -> None:
    rng = Random(seed)
    size, fraction = rng.randint(2, 9), rng.choice([0.1, 0.25, 0.5])
    scores = _random_scores(rng, rng.choice([1, 3]), rng.choice([0.0, 0.1]))
    runs = [
        Simulation(
            Plan(size, (10, 20, 30, 40), workers, "pbt", quantile_fraction=fraction, seed=seed), scores, Random(n)
        )
        for workers in (1, 2, 4)
        for n in range(4)
    ]
    # The number of workers and the order of finishing change when jobs are decided, and never what becomes of whom.
    assert all(run.forks == runs[0].forks for run in runs)
    assert all(run.jobs == runs[n - n % 4].jobs for n, run in enumerate(runs))
    first = runs[0]
    for rung in range(4):
        if all(any(scores[trial, before] for trial in first.members(before)) for before in range(rung)):
            assert len(first.members(rung)) == size
    for number, (fork, rung) in first.forks.items():
        generation = first.members(rung - 1)
        parent, loser = scores[fork.parent, rung - 1], scores[fork.replaces, rung - 1]
        assert number not in generation
        assert {fork.parent, fork.replaces} <= generation
        assert fork.replaces not in first.members(rung)
        better = sum(_mean(scores[each, rung - 1]) > _mean(parent) for each in generation if scores[each, rung - 1])
        assert better < min(math.ceil(size * fraction), size // 2)
        assert parent, "a failed trial was forked"
        assert not loser or _mean(loser) < _mean(parent)
    places = [(fork.replaces, rung) for fork, rung in first.forks.values()]
    assert len(set(places)) == len(places), "one place was given to two forks"


def test_a_member_that_is_sure_to_survive_does_not_wait_for_the_others() -> None:
    plan = Plan(4, (10, 20), 1, "pbt", quantile_fraction=0.25)
    jobs = [Job(n, n, 0, True, (score,)) for n, score in enumerate([5.0, 1.0, 3.0])]
    assert next_step(jobs, plan) == Step(3)
    # With two workers the result of trial 3 is not known yet: 0 and 2 have one below them, 1 has not.
    two = Plan(4, (10, 20), 2, "pbt", quantile_fraction=0.25)
    jobs.append(Job(3, 3))
    assert next_step(jobs, two) == Step(0, 1)


def test_a_failed_member_is_replaced_beyond_the_quantile_and_a_dead_population_ends() -> None:
    assert replaced({0: (), 1: (), 2: (1.0,), 3: (2.0,)}, 1) == ([3], [0, 1])
    assert replaced({0: (), 1: ()}, 1) == ([], [])
    plan = Plan(2, (10, 20), 1, "pbt")
    assert next_step([Job(0, 0, 0, True), Job(1, 1, 0, True)], plan) == OVER


def test_equals_are_not_replaced() -> None:
    assert replaced({0: (5.0,), 1: (5.0,), 2: (5.0,), 3: (5.0,)}, 1) == ([0], [])


def test_a_member_whose_interval_reaches_the_best_is_not_replaced() -> None:
    sure = {0: (10.0, 10.0, 10.0), 1: (8.0, 8.0, 8.0), 2: (9.0, 9.0, 9.0), 3: (2.0, 2.1, 2.0)}
    assert replaced(sure, 1) == ([0], [3])
    unsure = {**sure, 3: (0.0, 0.0, 12.0)}
    assert replaced(unsure, 1) == ([0], [])


def test_another_seed_forks_others() -> None:
    scores = {(trial, rung): (float(trial % 8),) for trial in range(60) for rung in range(5)}
    plans = [Plan(8, (10, 20), 1, "pbt", quantile_fraction=0.5, seed=seed) for seed in range(8)]
    found = {tuple(fork.parent for fork, _ in Simulation(plan, scores, Random(0)).forks.values()) for plan in plans}
    assert len(found) > 1
