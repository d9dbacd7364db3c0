"""Credit: the rewards of groups of completions, one group to a prompt, become advantages.

Everything here is a pure function of one number per completion. Groups may differ in size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

Scale = Literal["group", "batch", "none"]
TINY = 1e-6
"""Rewards that differ by less are the same."""


def credit(name: str, rewards: np.ndarray, groups: np.ndarray, scale: Scale | None = None) -> np.ndarray:
    """Advantages by the method `name` for completions whose groups are numbered in `groups`.

    `scale` divides by the standard deviation of the group's or the batch's rewards; None is the method's own habit.
    """
    rewards = np.asarray(rewards, dtype=np.float64)
    if not np.isfinite(rewards).all():
        raise ValueError("a completion without a reward has no advantage: leave it out")
    _, inverse = np.unique(np.asarray(groups), return_inverse=True)
    stats = group_stats(rewards, inverse)
    method, habit = METHODS[name]
    return scaled(method(rewards, stats), rewards, stats, scale or habit)


@dataclass(frozen=True)
class GroupStats:
    """For each completion, of its group: the size, the mean and the standard deviation (divided by the size)."""

    size: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray


def group_stats(rewards: np.ndarray, groups: np.ndarray) -> GroupStats:
    """Statistics of groups numbered from 0, spread over their completions."""
    size = np.bincount(groups)
    mean = np.bincount(groups, rewards) / size
    deviation = np.sqrt(np.bincount(groups, (rewards - mean[groups]) ** 2) / size)
    return GroupStats(size[groups], mean[groups], deviation[groups])


def scaled(advantages: np.ndarray, rewards: np.ndarray, stats: GroupStats, scale: Scale) -> np.ndarray:
    """Advantages divided by a standard deviation; where all rewards are the same they are 0 anyway."""
    if scale == "group":
        return advantages / np.maximum(stats.deviation, TINY)
    if scale == "batch":
        return advantages / max(float(rewards.std()), TINY)
    return advantages


def centred(rewards: np.ndarray, stats: GroupStats) -> np.ndarray:
    """R - mean of the group: GRPO (Shao et al. 2024) and, unscaled, Dr. GRPO (Liu et al. 2025)."""
    return rewards - stats.mean


def leave_one_out(rewards: np.ndarray, stats: GroupStats) -> np.ndarray:
    """R - mean of the others in the group: RLOO (Ahmadian et al. 2024). One that is alone gets 0."""
    return (rewards - stats.mean) * stats.size / np.maximum(stats.size - 1, 1)


def of_the_batch(rewards: np.ndarray, stats: GroupStats) -> np.ndarray:
    """R - mean of the whole batch: REINFORCE++ (Hu et al. 2025)."""
    del stats
    return rewards - rewards.mean()


def over_the_mean(rewards: np.ndarray, stats: GroupStats) -> np.ndarray:
    """(R - mean) / mean of the group: its policy gradient is that of the log of the success rate, MaxRL."""
    return np.where(stats.mean > TINY, (rewards - stats.mean) / np.maximum(stats.mean, TINY), 0.0)


METHODS: dict[str, tuple[Callable[[np.ndarray, GroupStats], np.ndarray], Scale]] = {
    "grpo": (centred, "group"),
    "dr_grpo": (centred, "none"),
    "rloo": (leave_one_out, "none"),
    "reinforce_pp": (of_the_batch, "batch"),
    "reinforce_pp_baseline": (centred, "batch"),
    "max_rl": (over_the_mean, "none"),
}
