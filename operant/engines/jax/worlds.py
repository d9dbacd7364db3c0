"""Environments inside the program: their states, the scores of unfinished episodes, and how a rollout is played."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from operant.engines.jax.devices import Axis, max_over, mean_over, sum_over, unrolled
from operant.engines.jax.learner import Recorded
from operant.envs.functional import FunctionalEnv, Outcome, unnamed

RECORDED = 64  # environments whose episodes are written down, beside the counts and means of all
MOST_CUTS = 4  # truncations of one environment in a rollout, beyond which every successor is kept


class Worlds(NamedTuple):
    """Environments as they stand [N, ...], and what their unfinished episodes have come to."""

    env: Any
    observation: Array
    score: Array
    length: Array


class Tally(NamedTuple):
    """Sums and maxima of a problem's metrics over the steps of a rollout, still apart for every environment [N]."""

    sums: dict[str, Array]
    maxima: dict[str, Array]


class Step(NamedTuple):
    """One step of every environment, as a learner sees it; `successor` is the observation before any reset.

    `facts` are those of the recorded environments only.
    """

    observation: Array
    mask: Array | None
    action: Array
    reward: Array
    terminated: Array
    truncated: Array
    successor: Array
    facts: dict[str, Array]


class Ended(NamedTuple):
    """Sums over the episodes that ended."""

    episodes: Array
    score: Array
    length: Array


def begin(env: FunctionalEnv, key: Array, count: int) -> Worlds:
    """Fresh episodes in `count` environments."""
    states, observation = jax.vmap(env.reset)(unnamed(jax.random.split(key, count)))
    return Worlds(states, observation, jnp.zeros(count), jnp.zeros(count, jnp.int32))


@cache
def advancing(env: FunctionalEnv) -> Callable[..., tuple[Any, Array, Outcome]]:
    """The problem's `advance`, traced once wherever it is used: of a large game that takes seconds."""
    return jax.jit(env.advance)


def empty_tally(env: FunctionalEnv, worlds: Worlds, action: Any) -> Tally:
    """Nothing counted yet."""
    count = len(worlds.score)
    keys = jax.random.split(jax.random.key(0), count)
    names = jax.eval_shape(advancing(env), worlds.env, action, keys)[2].metrics
    sums = {name: jnp.zeros(count) for name in names if env.reductions.get(name) != "max"}
    return Tally(sums, {name: jnp.full(count, -jnp.inf) for name in names if name not in sums})


def step(env: FunctionalEnv, worlds: Worlds, tally: Tally, action: Array, keys: Array) -> tuple[Worlds, Tally, Outcome]:
    """Play one action in every environment. Scores and lengths stay behind: `account` follows them afterwards."""
    states, observation, outcome = advancing(env)(worlds.env, action, keys)
    tally = Tally(
        {name: value + outcome.metrics[name] for name, value in tally.sums.items()},
        {name: jnp.maximum(value, outcome.metrics[name]) for name, value in tally.maxima.items()},
    )
    return worlds._replace(env=states, observation=observation), tally, outcome


def account(
    worlds: Worlds, reward: Array, terminated: Array, truncated: Array, facts: dict[str, Array], axis: Axis
) -> tuple[Worlds, Recorded, Ended]:
    """What a rollout [T, N] adds to scores and lengths, and the episodes that ended in it.

    All steps at once, after they were played: in the loop it would be a dozen operations more for each.
    """
    over = terminated | truncated

    def add(before: tuple[Array, Array], now: tuple[Array, Array]) -> tuple[Any, tuple[Array, Array]]:
        score, length = before[0] + now[0], before[1] + 1
        return (jnp.where(now[1], 0.0, score), jnp.where(now[1], 0, length)), (score, length)

    start = (worlds.score, worlds.length)
    (score, length), (scores, lengths) = lax.scan(add, start, (reward, over), unroll=unrolled(len(reward)))
    sums = (over.sum(), jnp.where(over, scores, 0.0).sum(), jnp.where(over, lengths, 0).sum())
    first = [part[:, :RECORDED] for part in (over, terminated, scores, lengths)]
    recorded = Recorded(first[0], first[1], first[2], first[3], facts)
    ended = sum_over(axis, Ended(*(each.astype(jnp.float32) for each in sums)))
    return worlds._replace(score=score, length=length), recorded, ended


def recorded_facts(outcome: Outcome) -> dict[str, Array]:
    """What this step would have an episode remembered by, of the environments whose episodes are written down."""
    return {name: value[:RECORDED] for name, value in outcome.facts.items()}


def told(tally: Tally, steps: int, axis: Axis) -> tuple[dict[str, Array], dict[str, Array]]:
    """A tally as what a report holds: means of the metrics, and maxima."""
    means = {name: mean_over(axis, value.mean()) / steps for name, value in tally.sums.items()}
    return means, {name: max_over(axis, value.max()) for name, value in tally.maxima.items()}


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
