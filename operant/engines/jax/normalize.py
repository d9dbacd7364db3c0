"""Running normalization of observations and rewards; the statistics are part of the train state.

They are updated once per rollout, from all of its steps: a rollout uses the observation statistics of its
beginning, and its rewards are scaled by return statistics that include it. The rules are those of the torch engine.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from operant.engines.jax.devices import Axis, mean_over, scan_unroll, sum_over

EPSILON = 1e-8
REWARD_CLIP = 10.0  # of normalized rewards where a spec names none, as in the torch engine


class RunningMeanStd(NamedTuple):
    """Mean and variance of all rows so far, by the parallel update of Chan et al. (1979)."""

    mean: Array
    variance: Array
    count: Array


def init_stats(shape: tuple[int, ...]) -> RunningMeanStd:
    """Statistics of no rows yet."""
    return RunningMeanStd(jnp.zeros(shape), jnp.ones(shape), jnp.float32(0.0))


def init_return_stats(num: int) -> RunningMeanStd:
    """Statistics of the discounted returns of `num` environments before their first rewards: each is 0."""
    return RunningMeanStd(jnp.float32(0.0), jnp.float32(0.0), jnp.float32(num))


def update(stats: RunningMeanStd, batch: Array, axis: Axis) -> RunningMeanStd:
    """Add rows [n, ...] of every device."""
    batch = batch.astype(jnp.float32)
    n = sum_over(axis, jnp.float32(len(batch)))
    mean = mean_over(axis, batch.mean(0))
    variance = mean_over(axis, jnp.square(batch - mean).mean(0))
    total = stats.count + n
    shift = mean - stats.mean
    share = n / total
    spread = stats.variance * (1 - share) + variance * share + jnp.square(shift) * share * (1 - share)
    return RunningMeanStd(stats.mean + shift * share, spread, total)


def normalize_obs(stats: RunningMeanStd | None, observation: Array, clip: float) -> Array:
    """Observations as (x - mean) / deviation, limited to +-clip; without statistics as they are."""
    if stats is None:
        return observation
    return jnp.clip((observation - stats.mean) / jnp.sqrt(stats.variance + EPSILON), -clip, clip)


def standardize(stats: RunningMeanStd, returns: Array) -> Array:
    """Returns by the statistics of all so far, as a critic learns them."""
    return (returns - stats.mean) / jnp.sqrt(stats.variance + EPSILON)


def unstandardize(stats: RunningMeanStd | None, output: Array) -> Array:
    """The returns that a critic's outputs stand for; without statistics the outputs themselves."""
    return output if stats is None else output * jnp.sqrt(stats.variance + EPSILON) + stats.mean


def normalize_rewards(stats: RunningMeanStd, reward: Array) -> Array:
    """Rewards over the deviation of returns, which is 0 only while every reward was."""
    return reward / jnp.where(stats.variance > 0, jnp.sqrt(stats.variance), 1.0)


def clip_rewards(reward: Array, normalized: bool, clip: float | None) -> Array:
    """Rewards within +-clip; normalized ones within `REWARD_CLIP` where no clip is given."""
    limit = REWARD_CLIP if normalized and clip is None else clip
    return reward if limit is None else jnp.clip(reward, -limit, limit)


def discounted_returns(running: Array, reward: Array, over: Array, gamma: Array) -> tuple[Array, Array]:
    """The running discounted return after each step [T, N], and what is carried on to the next rollout [N]."""

    def step(before: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        value = before * gamma + now[0]
        return jnp.where(now[1], 0.0, value), value

    return lax.scan(step, running, (reward, over), unroll=scan_unroll(len(reward)))
