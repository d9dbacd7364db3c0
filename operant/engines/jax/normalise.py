"""Running standardisation of observations and rewards; the statistics are part of the state.

They learn once per rollout, from all of its steps: a rollout is played with the statistics of its
beginning, and rewards are scaled by those that include it. The rules are those of the torch engine.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from operant.engines.jax.devices import Axis, mean_over, sum_over, unrolled

TINY = 1e-8
LIMIT = 10.0  # of normalised rewards where a spec names none, as in the torch engine


class Moments(NamedTuple):
    """Mean and variance of everything seen, by the parallel update of Chan et al. (1979)."""

    mean: Array
    variance: Array
    count: Array


def fresh(shape: tuple[int, ...]) -> Moments:
    """Of nothing seen."""
    return Moments(jnp.zeros(shape), jnp.ones(shape), jnp.float32(0.0))


def fresh_returns(num: int) -> Moments:
    """Of the discounted returns of `num` environments before their first rewards, each of which is 0."""
    return Moments(jnp.float32(0.0), jnp.float32(0.0), jnp.float32(num))


def learn(moments: Moments, batch: Array, axis: Axis) -> Moments:
    """Add rows [n, ...] of every device."""
    batch = batch.astype(jnp.float32)
    n = sum_over(axis, jnp.float32(len(batch)))
    mean = mean_over(axis, batch.mean(0))
    variance = mean_over(axis, jnp.square(batch - mean).mean(0))
    total = moments.count + n
    shift = mean - moments.mean
    share = n / total
    spread = moments.variance * (1 - share) + variance * share + jnp.square(shift) * share * (1 - share)
    return Moments(moments.mean + shift * share, spread, total)


def scaled(moments: Moments | None, observation: Array, clip: float) -> Array:
    """Observations as (x - mean) / deviation, limited to +-clip; without statistics as they are."""
    if moments is None:
        return observation
    return jnp.clip((observation - moments.mean) / jnp.sqrt(moments.variance + TINY), -clip, clip)


def scaled_rewards(moments: Moments, reward: Array) -> Array:
    """Rewards over the deviation of returns, which is 0 only while every reward was."""
    return reward / jnp.where(moments.variance > 0, jnp.sqrt(moments.variance), 1.0)


def limited(reward: Array, normalised: bool, clip: float | None) -> Array:
    """Rewards within +-clip; normalised ones within `LIMIT` where no clip is given."""
    limit = LIMIT if normalised and clip is None else clip
    return reward if limit is None else jnp.clip(reward, -limit, limit)


def discounted(running: Array, reward: Array, over: Array, gamma: Array) -> tuple[Array, Array]:
    """The running discounted return after each step [T, N], and what is carried on to the next rollout [N]."""

    def step(before: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        value = before * gamma + now[0]
        return jnp.where(now[1], 0.0, value), value

    return lax.scan(step, running, (reward, over), unroll=unrolled(len(reward)))
