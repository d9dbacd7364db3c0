"""Which trial to train next, and how far: a pure function of the jobs so far.

Job n is decided by the results of the jobs 0 to n - W, where W is the number of workers of the study, and by which
jobs were started before it. It waits for those results. So the sequence of trials and promotions is the same however
long each job takes, on however many machines, and wherever the search was killed. Where nothing can be decided yet
although jobs are still running, job n is idle: it holds the place, so that the next one sees one result more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Literal

import numpy as np

from operant.report.stats import mean_interval
from operant.run.seeding import Seeds

Rule = Literal["asha", "median", "pbt"]
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
    """What a search does: how many trials, the frames of their rungs, who is promoted, and W.

    Of `pbt`, `max_trial` is the size of the population, and `seed` decides who is forked.
    """

    max_trial: int
    rungs: tuple[int, ...]
    workers: int
    rule: Rule = "asha"
    reduction_factor: int = 3
    quantile_fraction: float = 0.25
    seed: int = 0


@dataclass(frozen=True)
class Fork:
    """Where a trial of `pbt` comes from: it goes on from `parent` at the rung before its first, in place of another."""

    parent: int
    replaces: int


@dataclass(frozen=True)
class Step:
    """The decision of a job: train `trial` up to `rung`, or stay idle. `fork` is set where this begins a fork."""

    trial: int | None = None
    rung: int = 0
    fork: Fork | None = None


WAIT, OVER = "wait", "over"


def next_step(jobs: Sequence[Job], plan: Plan) -> Step | Literal["wait", "over"]:
    """The decision of job `len(jobs)`; WAIT while a result it needs is missing, OVER when there is nothing left."""
    known = jobs[: max(0, len(jobs) - plan.workers + 1)]
    if not all(job.finished for job in known):
        return WAIT
    started = {(job.trial, job.rung) for job in jobs}
    begun = len({job.trial for job in jobs if job.trial is not None})
    fresh = [Step(begun)] if begun < plan.max_trial else []
    # A population is whole before any of it goes on; other searches prefer what is promising.
    steps = (
        chain(fresh, population_steps(known, plan)) if plan.rule == "pbt" else chain(_promotions(known, plan), fresh)
    )
    step = next((step for step in steps if (step.trial, step.rung) not in started), None)
    if step is not None:
        return step
    return Step() if any(job.trial is not None for job in jobs[len(known) :]) else OVER


def _promotions(known: Sequence[Job], plan: Plan) -> Iterator[Step]:
    """The trials that may go on, from the highest rung down, the best first."""
    for rung in reversed(range(len(plan.rungs) - 1)):
        for trial in promotable(_results(known, rung), plan.rule, plan.reduction_factor):
            yield Step(trial, rung + 1)


def _results(known: Sequence[Job], rung: int) -> dict[int, tuple[float, ...]]:
    """The scores of the trials that have reached a rung."""
    return {job.trial: job.scores for job in known if job.trial is not None and job.rung == rung}


def promotable(results: dict[int, tuple[float, ...]], rule: Rule, reduction_factor: int) -> list[int]:
    """The trials of a rung that may go on, best first; of equals the earlier one.

    A trial is stopped only if it is below the cut by more than its interval over seeds allows: it goes on where the
    upper end of its interval reaches the cut. One seed has no interval, and its score itself must. The cut of `asha`
    is the score of the last of the best 1/reduction_factor, of `median` the median of the rung, from three trials on.
    A failed trial counts among the trials of its rung and never goes on.
    """
    means = _means(results)
    ranked = list(means)
    if rule == "asha":
        best = ranked[: len(results) // reduction_factor]
        if not best:
            return []
        cut = means[best[-1]]
    elif len(results) < LEAST_FOR_MEDIAN or not ranked:
        return ranked
    else:
        best, cut = [], float(np.median(list(means.values())))
    # Of trials with equal scores plain ASHA promotes no more than its share.
    may_equal = rule != "asha" or len(results[ranked[0]]) > 1
    return [trial for trial in ranked if trial in best or (may_equal and _reaches(results[trial], cut))]


def population_steps(known: Sequence[Job], plan: Plan) -> Iterator[Step]:
    """How a population goes on (Jaderberg et al., 2017), generation by generation: forks first, then the survivors.

    A generation is whole when each of the `max_trial` members has its result at the rung. Then those of the worst
    quantile end, and each gives its place to a fork of one of the best. A member below which a whole quantile is
    known already survives for certain and goes on without waiting for the others, so who is forked from whom does not
    depend on the number of workers.
    """
    size, numbers = plan.max_trial, plan.max_trial
    quantile = min(math.ceil(size * plan.quantile_fraction), size // 2)
    for rung in range(len(plan.rungs) - 1):
        results = _results(known, rung)
        order = [*_means(results), *sorted(trial for trial, scores in results.items() if not scores)]
        if len(results) < size:
            survivors = [trial for trial in order[: max(0, len(order) - quantile)] if results[trial]]
        else:
            best, lost = replaced(results, quantile)
            survivors = [trial for trial in order if results[trial] and trial not in lost]
            for number, loser in enumerate(lost, numbers):
                choice = int(Seeds(plan.seed).rng("search parent", number).integers(len(best)))
                yield Step(number, rung + 1, Fork(best[choice], loser))
            numbers += len(lost)
        yield from (Step(trial, rung + 1) for trial in survivors)


def replaced(results: dict[int, tuple[float, ...]], quantile: int) -> tuple[list[int], list[int]]:
    """The members of a whole generation that are forked, best first, and those whose place the forks take.

    A member is replaced if it has failed, or if it is among the `quantile` worst and below the cut by more than its
    interval over seeds allows. The cut is the score of the last of the `quantile` best. Where all have failed there is
    nobody to fork, and nobody is replaced.
    """
    means = _means(results)
    failed = sorted(trial for trial, scores in results.items() if not scores)
    best = list(means)[: max(1, quantile)]
    if not best:
        return [], []
    worst = [*means, *failed][len(results) - quantile :]
    below = [trial for trial in worst if trial in means and not _reaches(results[trial], means[best[-1]])]
    return best, [*below, *failed]


def _means(results: dict[int, tuple[float, ...]]) -> dict[int, float]:
    """The mean scores of the trials that have not failed, best first; of equals the earlier one."""
    means = {trial: float(np.mean(scores)) for trial, scores in results.items() if scores}
    return dict(sorted(means.items(), key=lambda item: (-item[1], item[0])))


@lru_cache(maxsize=1 << 16)
def _reaches(scores: tuple[float, ...], cut: float) -> bool:
    """Whether the interval of these seeds allows that the trial is at the cut; of one seed its score must be."""
    high = mean_interval(scores).high
    return (scores[0] if high is None else high) >= cut
