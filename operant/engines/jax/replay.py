"""A ring of past transitions inside the program, and the play that fills it.

Every environment has its own row of the ring, so that devices have equal shares of it and each
samples its share of a batch from its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from operant.engines.jax import policies, worlds
from operant.engines.jax.devices import Axis
from operant.engines.jax.learner import Recorded
from operant.engines.jax.worlds import Ended, Tally, Worlds
from operant.envs.functional import FunctionalEnv

Act = Callable[[Array, Array, Array], Array]


class Transition(NamedTuple):
    """What was seen, done and gained, and the observation that it led to, before any reset."""

    observation: Array
    action: Array
    reward: Array
    successor: Array
    terminated: Array


class Ring(NamedTuple):
    """Transitions [N, C, ...], and how many steps each environment has ever added [N]: the same for all."""

    kept: Transition
    added: Array


class Playing(NamedTuple):
    """The environments and their memory."""

    worlds: Worlds
    ring: Ring


def empty(env: FunctionalEnv, started: Worlds, capacity: int, storage: Any) -> Ring:
    """Room for `capacity` steps of every environment."""
    count = len(started.score)
    discrete = isinstance(env.actions, policies.Discrete)
    action = jnp.zeros((count, capacity), jnp.int32)
    if not discrete:
        action = jnp.zeros((count, capacity, policies.outputs_of(env.actions)))
    seen = jnp.zeros((count, capacity, *env.observation_shape), storage)
    kept = Transition(seen, action, jnp.zeros((count, capacity)), seen, jnp.zeros((count, capacity), bool))
    return Ring(kept, jnp.zeros(count, jnp.int32))


def add(ring: Ring, one: Transition) -> Ring:
    """The ring with one more step of every environment, in place of the oldest when it is full."""
    capacity = ring.kept.reward.shape[1]
    here = ring.added[0] % capacity
    kept = jax.tree.map(
        lambda room, x: lax.dynamic_update_index_in_dim(room, x.astype(room.dtype), here, 1), ring.kept, one
    )
    return Ring(kept, ring.added + 1)


def sample(ring: Ring, bits: Array) -> Transition:
    """A transition for each of the random bits, every one that is kept equally likely."""
    count, capacity = ring.kept.reward.shape
    filled = jnp.minimum(ring.added[0], capacity).astype(jnp.uint32)
    index = bits % (filled * count)
    which, when = index % count, index // count
    return jax.tree.map(lambda x: x[which, when], ring.kept)


def play(
    env: FunctionalEnv, start: Playing, key: Array, steps: int, act: Act, clip: float | None, axis: Axis
) -> tuple[Playing, Array, Tally, Recorded, Ended]:
    """Play `steps` steps of every environment and keep them; also returns all observations, and what ended.

    `act` chooses actions from observations [N, ...] and random bits: one [N], and one for each output [N, K].
    """
    count, outputs = len(start.worlds.score), policies.outputs_of(env.actions)
    bits = jax.random.bits(key, (steps, count, outputs + 3))
    keys = jax.random.wrap_key_data(bits[..., :2])
    action = jax.eval_shape(
        lambda x, b: policies.to_env(env.actions, act(x, b[:, 2], b[:, 3:])), start.worlds.observation, bits[0]
    )
    tally = worlds.empty_tally(env, start.worlds, action)

    def step(carry: tuple[Playing, Tally], given: tuple[Array, Array]) -> tuple[Any, tuple[Any, ...]]:
        (now, ring), tally = carry
        action = act(now.observation, given[0][:, 2], given[0][:, 3:])
        after, tally, outcome = worlds.step(env, now, tally, policies.to_env(env.actions, action), given[1])
        reward = outcome.reward if clip is None else jnp.clip(outcome.reward, -clip, clip)
        one = Transition(now.observation, action, reward, outcome.observation, outcome.terminated)
        told = (outcome.reward, outcome.terminated, outcome.truncated, worlds.recorded_facts(outcome))
        return (Playing(after, add(ring, one)), tally), (now.observation, *told)

    (after, tally), (seen, reward, terminated, truncated, facts) = lax.scan(step, (start, tally), (bits, keys))
    counted, recorded, ended = worlds.account(after.worlds, reward, terminated, truncated, facts, axis)
    return Playing(counted, after.ring), seen, tally, recorded, ended


def share(bits: Array) -> Array:
    """Random bits as numbers in [0, 1)."""
    return (bits >> 8).astype(jnp.float32) * 2.0**-24
