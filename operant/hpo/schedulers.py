"""Which trial to train next, and how far: a pure function of the jobs so far.

Job n is decided by the results of the jobs 0 to n - W, where W is the number of workers of the study, and by which
jobs were started before it. It waits for those results. So the sequence of trials and promotions is the same however
long each job takes, on however many machines, and wherever the search was killed. Where nothing can be decided yet
although jobs are still running, job n is idle: it holds the place, so that the next one sees one result more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from operant.report.stats import mean_interval

LEAST_FOR_MEDIAN = 3


@dataclass(frozen=True)
class Job:
    """One row of the table: a trial trained up to a rung, counted from 0; idle where `trial` is None.

    `scores` has one score for each session once the job is finished; it is empty where the trial failed.
    """

    number: int
    trial: int | None = None
    rung: int = 0
    finished: bool = False
    scores: tuple[float, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What a search does: how many trials, the frames of their rungs, who is promoted, and W."""

    max_trial: int
    rungs: tuple[int, ...]
    workers: int
    rule: Literal["asha", "median"] = "asha"
    reduction_factor: int = 3


@dataclass(frozen=True)
class Step:
    """The decision of a job: train `trial` up to `rung`, or stay idle."""

    trial: int | None = None
    rung: int = 0


WAIT, OVER = "wait", "over"


def next_step(jobs: Sequence[Job], plan: Plan) -> Step | Literal["wait", "over"]:
    """The decision of job `len(jobs)`; WAIT while a result it needs is missing, OVER when there is nothing left."""
    known = jobs[: max(0, len(jobs) - plan.workers + 1)]
    if not all(job.finished for job in known):
        return WAIT
    started = {(job.trial, job.rung) for job in jobs}
    promoted = _promotion(known, started, plan)
    if promoted is not None:
        return promoted
    begun = len({job.trial for job in jobs if job.trial is not None})
    if begun < plan.max_trial:
        return Step(begun)
    return Step() if any(job.trial is not None for job in jobs[len(known) :]) else OVER


def _promotion(known: Sequence[Job], started: set[tuple[int | None, int]], plan: Plan) -> Step | None:
    """The best trial that may go on, from the highest rung that has one."""
    for rung in reversed(range(len(plan.rungs) - 1)):
        results = {job.trial: job.scores for job in known if job.trial is not None and job.rung == rung}
        for trial in promotable(results, plan.rule, plan.reduction_factor):
            if (trial, rung + 1) not in started:
                return Step(trial, rung + 1)
    return None


def promotable(
    results: dict[int, tuple[float, ...]], rule: Literal["asha", "median"], reduction_factor: int
) -> list[int]:
    """The trials of a rung that may go on, best first; of equals the earlier one.

    A trial is stopped only if it is below the cut by more than its interval over seeds allows: it goes on where the
    upper end of its interval reaches the cut. One seed has no interval, and its score itself must. The cut of `asha`
    is the score of the last of the best 1/reduction_factor, of `median` the median of the rung, from three trials on.
    A failed trial counts among the trials of its rung and never goes on.
    """
    means = {trial: float(np.mean(scores)) for trial, scores in results.items() if scores}
    ranked = sorted(means, key=lambda trial: (-means[trial], trial))
    if rule == "asha":
        best = ranked[: len(results) // reduction_factor]
        if not best:
            return []
        cut = means[best[-1]]
    elif len(results) < LEAST_FOR_MEDIAN or not ranked:
        return ranked
    else:
        best, cut = [], float(np.median(list(means.values())))
    return [trial for trial in ranked if trial in best or _reaches(results[trial], cut, rule)]


def _reaches(scores: tuple[float, ...], cut: float, rule: Literal["asha", "median"]) -> bool:
    """Whether the interval of these seeds allows that the trial is at the cut."""
    high = mean_interval(scores).high
    if high is None:
        # Of trials with equal scores plain ASHA promotes no more than its share.
        return rule == "median" and scores[0] >= cut
    return high >= cut
