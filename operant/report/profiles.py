"""Performance profiles: for each score, the share of runs that have more.

A profile shows what an aggregate hides: one that lies above another everywhere is better in every respect, two that
cross are better in different respects. The area under a profile of scores from 0 to 1 is their mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from operant.report.bootstrap import Scores, by_task, resampled
from operant.report.stats import CONFIDENCE, Floats, tails

POINTS = 401
PROFILE_RESAMPLES = 2000


@dataclass(frozen=True)
class Profile:
    """The share of runs above each of the `scores`, with the ends of its pointwise interval; None for one seed."""

    scores: Floats
    share: Floats
    low: Floats | None
    high: Floats | None


def performance_profile(
    scores: Scores, at: Floats, *, confidence: float = CONFIDENCE, resamples: int = PROFILE_RESAMPLES
) -> Profile:
    """The profile at those scores, averaged over tasks, with a stratified bootstrap interval at each of them."""
    tasks = by_task(scores)
    share = np.mean([_above(seeds, at) for seeds in tasks], axis=0)
    if all(len(seeds) == 1 for seeds in tasks):
        return Profile(at, share, None, None)
    draws = np.mean([_above(draw, at) for draw in resampled(tasks, resamples)], axis=0)
    low, high = np.quantile(draws, tails(confidence), axis=0)
    return Profile(at, share, low, high)


def profile_scores(tables: Sequence[Scores], zero_to_one: bool = True) -> Floats:
    """Evenly spaced scores from the lowest to the highest of all tables, and if so told from 0 to 1 at least."""
    every = np.concatenate([seeds for table in tables for seeds in by_task(table)])
    ends = [*every, 0.0, 1.0] if zero_to_one else every
    return np.linspace(min(ends), max(ends), POINTS)


def _above(seeds: Floats, at: Floats) -> Floats:
    """`[..., score]`: the share of the seeds above each score, counted by where it would stand among them in order."""
    if seeds.ndim == 1:
        return 1.0 - np.searchsorted(np.sort(seeds), at, side="right") / len(seeds)
    return (seeds[:, :, None] > at).mean(axis=1)
