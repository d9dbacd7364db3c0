"""Advantages: the rewards of groups of completions, one group to a prompt, become advantages.

Everything here is a pure function of one number per completion, and for some methods its length. Groups may differ
in size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

Scale = Literal["group", "batch", "none"]
TINY = 1e-6
"""Rewards that differ by less are the same."""


def compute_advantages(
    name: str, rewards: np.ndarray, groups: np.ndarray, scale: Scale | None = None, tokens: np.ndarray | None = None
) -> np.ndarray:
    """Advantages by the method `name` for completions whose groups are numbered in `groups`.

    `scale` divides by a standard deviation of the group or of the batch; None is the method's own habit. `tokens` has
    the lengths of the completions, for methods that standardise over tokens; None is all alike. Groups of equal
    rewards get exactly 0 from methods whose baseline is the group's.
    """
    rewards = np.asarray(rewards, dtype=np.float64)
    if not np.isfinite(rewards).all():
        raise ValueError("a completion without a reward has no advantage: leave it out")
    _, inverse = np.unique(np.asarray(groups), return_inverse=True)
    counted = tokens is not None and name in OVER_TOKENS and np.any(tokens)
    weight = np.asarray(tokens, dtype=np.float64) if counted else np.ones(len(rewards))
    stats = group_stats(rewards, inverse, weight)
    method, habit = METHODS[name]
    advantages = method(rewards, stats)
    # REINFORCE++ divides by the deviation of what it has centred, other methods by that of the rewards.
    return scaled(advantages, advantages if name in OVER_TOKENS else rewards, stats, scale or habit)


@dataclass(frozen=True)
class GroupStats:
    """For each completion, of its group: the size, the mean and the standard deviation (divided by the size).

    `weight` is how often it counts in statistics of the batch.
    """

    size: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    weight: np.ndarray


def group_stats(rewards: np.ndarray, groups: np.ndarray, weight: np.ndarray) -> GroupStats:
    """Statistics of groups numbered from 0, spread over their completions."""
    size = np.bincount(groups)
    least = np.full(len(size), np.inf)
    np.minimum.at(least, groups, rewards)
    # Measured from the least one, the mean of equal rewards is exactly that reward.
    mean = least + np.bincount(groups, rewards - least[groups]) / size
    deviation = np.sqrt(np.bincount(groups, (rewards - mean[groups]) ** 2) / size)
    return GroupStats(size[groups], mean[groups], deviation[groups], weight)


def scaled(advantages: np.ndarray, measured: np.ndarray, stats: GroupStats, scale: Scale) -> np.ndarray:
    """Advantages divided by a standard deviation: of the group's rewards, or over the batch of what is `measured`."""
    if scale == "group":
        return advantages / np.maximum(stats.deviation, TINY)
    if scale == "batch":
        mean = np.average(measured, weights=stats.weight)
        variance = np.average((measured - mean) ** 2, weights=stats.weight)
        return advantages / max(float(np.sqrt(variance)), TINY)
    return advantages


def centered(rewards: np.ndarray, stats: GroupStats) -> np.ndarray:
    """R - mean of the group: GRPO (Shao et al. 2024) and, unscaled, Dr. GRPO (Liu et al. 2025)."""
    return rewards - stats.mean


def leave_one_out(rewards: np.ndarray, stats: GroupStats) -> np.ndarray:
    """R - mean of the others in the group: RLOO (Ahmadian et al. 2024). One that is alone gets 0."""
    return (rewards - stats.mean) * stats.size / np.maximum(stats.size - 1, 1)


def of_the_batch(rewards: np.ndarray, stats: GroupStats) -> np.ndarray:
    """R - mean over all tokens of the batch: REINFORCE++ (Hu et al. 2025), in which every token has an advantage."""
    return rewards - np.average(rewards, weights=stats.weight)


def of_group_and_batch(rewards: np.ndarray, stats: GroupStats) -> np.ndarray:
    """R - mean of the group, and then less the mean of that over all tokens: REINFORCE++ with baseline."""
    return of_the_batch(rewards - stats.mean, stats)


def over_the_mean(rewards: np.ndarray, stats: GroupStats) -> np.ndarray:
    """(R - mean) / mean of the group: MaxRL.

    In groups of n its policy gradient is that of the first n - 1 terms of log p = -(1 - p) - (1 - p)^2 / 2 - ..,
    where p is the success rate.
    """
    return np.where(stats.mean > TINY, (rewards - stats.mean) / np.maximum(stats.mean, TINY), 0.0)


METHODS: dict[str, tuple[Callable[[np.ndarray, GroupStats], np.ndarray], Scale]] = {
    "grpo": (centered, "group"),
    "dr_grpo": (centered, "none"),
    "rloo": (leave_one_out, "none"),
    "reinforce_pp": (of_the_batch, "batch"),
    "reinforce_pp_baseline": (of_group_and_batch, "batch"),
    "max_rl": (over_the_mean, "none"),
}
OVER_TOKENS = ("reinforce_pp", "reinforce_pp_baseline")
"""Methods whose statistics of the batch are over tokens, so that a completion counts as often as it has some."""
