"""The replay buffer inside the program: a ring of past transitions.

Every environment has its own row of the buffer, so that devices have equal shares of it and each
samples its share of a batch from its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from operant.engines.jax import distributions
from operant.envs.functional.env import Discrete, FunctionalEnv


class Transition(NamedTuple):
    """Observation, action and reward of a step, and the observation after it, before any reset."""

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    terminated: Array


class ReplayBuffer(NamedTuple):
    """Transitions [N, C, ...], and how many steps each environment has ever added [N]: the same for all."""

    transitions: Transition
    added: Array


def init_buffer(env: FunctionalEnv, count: int, capacity: int, storage: Any) -> ReplayBuffer:
    """Room for `capacity` steps of each of `count` environments."""
    action = jnp.zeros((count, capacity), jnp.int32)
    if not isinstance(env.actions, Discrete):
        action = jnp.zeros((count, capacity, distributions.num_outputs(env.actions)))
    observation = jnp.zeros((count, capacity, *env.observation_shape), storage)
    zeros, terminated = jnp.zeros((count, capacity)), jnp.zeros((count, capacity), bool)
    return ReplayBuffer(Transition(observation, action, zeros, observation, terminated), jnp.zeros(count, jnp.int32))


def add(buffer: ReplayBuffer, step: Transition) -> ReplayBuffer:
    """The buffer with one more step of every environment, in place of the oldest when it is full."""
    capacity = buffer.transitions.reward.shape[1]
    here = buffer.added[0] % capacity
    transitions = jax.tree.map(
        lambda room, x: lax.dynamic_update_index_in_dim(room, x.astype(room.dtype), here, 1), buffer.transitions, step
    )
    return ReplayBuffer(transitions, buffer.added + 1)


def sample(buffer: ReplayBuffer, bits: Array) -> Transition:
    """A transition for each of the random bits, uniformly among those in the buffer."""
    count, capacity = buffer.transitions.reward.shape
    filled = jnp.minimum(buffer.added[0], capacity).astype(jnp.uint32)
    index = bits % (filled * count)
    which, when = index % count, index // count
    return jax.tree.map(lambda x: x[which, when], buffer.transitions)
