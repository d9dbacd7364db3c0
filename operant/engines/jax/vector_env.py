"""The vector env inside the program: states of environments, returns of open episodes, and how both are stepped."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from operant.engines.jax.devices import Axis, max_over, mean_over, scan_unroll, sum_over
from operant.engines.jax.learner import RecordedSteps
from operant.envs.functional.env import FunctionalEnv, Outcome, unnamed

RECORDED = 64  # environments whose episodes are recorded one by one, beside the counts and means of all
MAX_TRUNCATIONS = 4  # truncations of one environment in a rollout, beyond which every next observation is kept


class VecEnvState(NamedTuple):
    """States of the environments [N, ...], and the return and length so far of their open episodes."""

    env_state: Any
    observation: Array
    score: Array
    length: Array


class EnvMetrics(NamedTuple):
    """Sums and maxima of the env's metrics over the steps of a rollout, of every environment [N]."""

    sums: dict[str, Array]
    maxima: dict[str, Array]


class Step(NamedTuple):
    """One step of every environment, as a learner uses it; `next_observation` is from before any reset.

    `facts` are those of the recorded environments only; `begun` says of environments on the host which observations
    are the first of an episode.
    """

    observation: Array
    mask: Array | None
    action: Array
    reward: Array
    terminated: Array
    truncated: Array
    next_observation: Array
    facts: dict[str, Array]
    begun: Array | None = None


class EpisodeSums(NamedTuple):
    """Sums over the episodes that ended."""

    episodes: Array
    score: Array
    length: Array


def reset(env: FunctionalEnv, key: Array, count: int) -> VecEnvState:
    """Fresh episodes in `count` environments."""
    states, observation = jax.vmap(env.reset)(unnamed(jax.random.split(key, count)))
    return VecEnvState(states, observation, jnp.zeros(count), jnp.zeros(count, jnp.int32))


@cache
def jitted_advance(env: FunctionalEnv) -> Callable[..., tuple[Any, Array, Outcome]]:
    """The env's `advance`, traced once wherever it is used: tracing a large game takes seconds."""
    return jax.jit(env.advance)


def init_metrics(env: FunctionalEnv, envs: VecEnvState, action: Any) -> EnvMetrics:
    """Metrics before the first step."""
    count = len(envs.score)
    keys = jax.random.split(jax.random.key(0), count)
    names = jax.eval_shape(jitted_advance(env), envs.env_state, action, keys)[2].metrics
    sums = {name: jnp.zeros(count) for name in names if env.reductions.get(name) != "max"}
    return EnvMetrics(sums, {name: jnp.full(count, -jnp.inf) for name in names if name not in sums})


def step(
    env: FunctionalEnv, envs: VecEnvState, metrics: EnvMetrics, action: Array, keys: Array
) -> tuple[VecEnvState, EnvMetrics, Outcome]:
    """One action in every environment. Scores and lengths are not updated here: `count_episodes` does it afterwards."""
    states, observation, outcome = jitted_advance(env)(envs.env_state, action, keys)
    metrics = EnvMetrics(
        {name: value + outcome.metrics[name] for name, value in metrics.sums.items()},
        {name: jnp.maximum(value, outcome.metrics[name]) for name, value in metrics.maxima.items()},
    )
    return envs._replace(env_state=states, observation=observation), metrics, outcome


def count_episodes(
    envs: VecEnvState, reward: Array, terminated: Array, truncated: Array, facts: dict[str, Array], axis: Axis
) -> tuple[VecEnvState, RecordedSteps, EpisodeSums]:
    """What a rollout [T, N] adds to scores and lengths, and the episodes that ended in it.

    All steps at once, after the rollout: in its loop it would be a dozen operations more for each step.
    """
    over = terminated | truncated

    def add(before: tuple[Array, Array], now: tuple[Array, Array]) -> tuple[Any, tuple[Array, Array]]:
        score, length = before[0] + now[0], before[1] + 1
        return (jnp.where(now[1], 0.0, score), jnp.where(now[1], 0, length)), (score, length)

    start = (envs.score, envs.length)
    (score, length), (scores, lengths) = lax.scan(add, start, (reward, over), unroll=scan_unroll(len(reward)))
    sums = (over.sum(), jnp.where(over, scores, 0.0).sum(), jnp.where(over, lengths, 0).sum())
    first = [part[:, :RECORDED] for part in (over, terminated, scores, lengths)]
    recorded = RecordedSteps(first[0], first[1], first[2], first[3], facts)
    ended = sum_over(axis, EpisodeSums(*(each.astype(jnp.float32) for each in sums)))
    return envs._replace(score=score, length=length), recorded, ended


def recorded_facts(outcome: Outcome) -> dict[str, Array]:
    """The facts of this step, of the environments whose episodes are recorded."""
    return {name: value[:RECORDED] for name, value in outcome.facts.items()}


def reduce_metrics(metrics: EnvMetrics, steps: int, axis: Axis) -> tuple[dict[str, Array], dict[str, Array]]:
    """Means and maxima of the metrics over steps, environments and devices."""
    means = {name: mean_over(axis, value.mean()) / steps for name, value in metrics.sums.items()}
    return means, {name: max_over(axis, value.max()) for name, value in metrics.maxima.items()}


class Truncations(NamedTuple):
    """The last observations of truncated episodes [S, N, ...], in the order of each environment, and how many [N]."""

    observation: Array
    count: Array


def truncation_slots(env: FunctionalEnv, steps: int) -> int | None:
    """How often one environment can be truncated in `steps` steps; None where it is more than `MAX_TRUNCATIONS`."""
    limit = getattr(env, "limit", None)
    most = None if limit is None else 1 + (steps - 1) // limit
    return None if most is None or most > MAX_TRUNCATIONS else most


def empty_truncations(count: int, observation: Array) -> Truncations:
    """Room for `count` truncations of every environment."""
    return Truncations(
        jnp.zeros((count, *observation.shape), observation.dtype), jnp.zeros(len(observation), jnp.int32)
    )


def store_truncation(truncations: Truncations, truncated: Array, final: Array) -> Truncations:
    """Keep the final observation of each environment that was truncated at this step."""
    here = truncated & (jnp.arange(len(truncations.observation))[:, None] == truncations.count)
    kept = jnp.where(here.reshape(here.shape + (1,) * (final.ndim - 1)), final, truncations.observation)
    return Truncations(kept, truncations.count + truncated)


def next_values(value: Array, last: Array, final: Array, truncated: Array) -> Array:
    """The value of each step's true next observation [T, N].

    `value` [T, N] are those of the steps, `last` [N] that of what comes after the rollout, `final` [S, N]
    those of the final observations of truncated episodes.
    """
    after = jnp.concatenate([value[1:], last[None]])
    which = jnp.cumsum(truncated, 0) - truncated
    for slot in range(len(final)):
        after = jnp.where(truncated & (which == slot), final[slot], after)
    return after


def at_truncations(states: Array, truncated: Array, slots: int) -> Array:
    """What of `states` [T, N, H] belongs to each truncated step, [S, N, H] in the order of each environment."""
    which = jnp.cumsum(truncated, 0) - truncated
    here = truncated & (which == jnp.arange(slots)[:, None, None])
    return jnp.where(here[..., None], states, 0.0).sum(1)
