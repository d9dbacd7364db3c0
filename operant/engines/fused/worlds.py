"""Environments inside the program: their states, the scores of unfinished episodes, and how a rollout is played."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from operant.engines.fused.devices import Axis, max_over, mean_over, sum_over
from operant.engines.fused.learner import Recorded
from operant.envs.functional import FunctionalEnv, Outcome

RECORDED = 64  # environments whose episodes are written down, beside the counts and means of all
MOST_CUTS = 4  # truncations of one environment in a rollout, beyond which every successor is kept


class Worlds(NamedTuple):
    """Environments as they stand [N, ...], and what their unfinished episodes have come to."""

    env: Any
    observation: Array
    score: Array
    length: Array


class Tally(NamedTuple):
    """Sums over the steps of a rollout, still apart for every environment [N]."""

    episodes: Array
    score: Array
    length: Array
    sums: dict[str, Array]
    maxima: dict[str, Array]


class Step(NamedTuple):
    """One step of every environment, as a learner sees it; `successor` is the observation before any reset."""

    observation: Array
    mask: Array | None
    action: Array
    reward: Array
    terminated: Array
    truncated: Array
    successor: Array


def begin(env: FunctionalEnv, key: Array, count: int) -> Worlds:
    """Fresh episodes in `count` environments."""
    states, observation = jax.vmap(env.reset)(jax.random.split(key, count))
    return Worlds(states, observation, jnp.zeros(count), jnp.zeros(count, jnp.int32))


def empty_tally(env: FunctionalEnv, worlds: Worlds, action: Array) -> Tally:
    """Nothing counted yet."""
    count = len(worlds.score)
    keys = jax.random.split(jax.random.key(0), count)
    shapes = jax.eval_shape(env.advance, worlds.env, action, keys)[2].metrics
    sums = {name: jnp.zeros(count) for name in shapes if env.reductions.get(name) != "max"}
    maxima = {name: jnp.full(count, -jnp.inf) for name in shapes if env.reductions.get(name) == "max"}
    return Tally(jnp.zeros(count), jnp.zeros(count), jnp.zeros(count), sums, maxima)


def step(
    env: FunctionalEnv, worlds: Worlds, tally: Tally, action: Array, keys: Array
) -> tuple[Worlds, Tally, Outcome, Recorded]:
    """Play one action in every environment and count what ended."""
    states, observation, outcome = env.advance(worlds.env, action, keys)
    over = outcome.terminated | outcome.truncated
    score, length = worlds.score + outcome.reward, worlds.length + 1
    some = min(RECORDED, len(over))
    recorded = Recorded(over[:some], outcome.terminated[:some], score[:some], length[:some])
    tally = Tally(
        tally.episodes + over,
        tally.score + jnp.where(over, score, 0.0),
        tally.length + jnp.where(over, length, 0),
        {name: value + outcome.metrics[name] for name, value in tally.sums.items()},
        {name: jnp.maximum(value, outcome.metrics[name]) for name, value in tally.maxima.items()},
    )
    worlds = Worlds(states, observation, jnp.where(over, 0.0, score), jnp.where(over, 0, length))
    return worlds, tally, outcome, recorded


def told(tally: Tally, steps: int, axis: Axis) -> tuple[dict[str, Array], dict[str, Array], tuple[Array, Array, Array]]:
    """A tally as what a report holds: means of the metrics, their maxima, and sums of finished episodes."""
    means = {name: mean_over(axis, value.mean()) / steps for name, value in tally.sums.items()}
    maxima = {name: max_over(axis, value.max()) for name, value in tally.maxima.items()}
    ended = (tally.episodes.sum(), tally.score.sum(), tally.length.sum())
    return means, maxima, sum_over(axis, ended)


class Cuts(NamedTuple):
    """The last observations of truncated episodes [S, N, ...], in the order of each environment, and how many [N]."""

    observation: Array
    count: Array


def slots(env: FunctionalEnv, steps: int) -> int | None:
    """How often one environment can be truncated in so many steps; None where it may be too often to keep apart."""
    limit = getattr(env, "limit", None)
    most = None if limit is None else 1 + (steps - 1) // limit
    return None if most is None or most > MOST_CUTS else most


def no_cuts(count: int, observation: Array) -> Cuts:
    """Room for `count` truncations of every environment."""
    return Cuts(jnp.zeros((count, *observation.shape), observation.dtype), jnp.zeros(len(observation), jnp.int32))


def keep_cut(cuts: Cuts, outcome: Outcome) -> Cuts:
    """Keep the final observation of each environment that was truncated at this step."""
    here = outcome.truncated & (jnp.arange(len(cuts.observation))[:, None] == cuts.count)
    shape = here.shape + (1,) * (outcome.observation.ndim - 1)
    kept = jnp.where(here.reshape(shape), outcome.observation.astype(cuts.observation.dtype), cuts.observation)
    return Cuts(kept, cuts.count + outcome.truncated)


def values_ahead(value: Array, last: Array, cut: Array, truncated: Array) -> Array:
    """The value of each step's true successor [T, N].

    `value` [T, N] are those of the steps, `last` [N] that of what comes after the rollout, `cut` [S, N]
    those of the final observations of truncated episodes.
    """
    ahead = jnp.concatenate([value[1:], last[None]])
    which = jnp.cumsum(truncated, 0) - truncated
    for slot in range(len(cut)):
        ahead = jnp.where(truncated & (which == slot), cut[slot], ahead)
    return ahead
