"""The replay buffer inside the program: a ring of past transitions.

Every environment has its own row of the buffer, so that devices have equal shares of it and each
samples its share of a batch from its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from operant.engines.jax import distributions
from operant.envs.functional.env import Discrete, FunctionalEnv


class Transition(NamedTuple):
    """Observation, action and reward of a step, and the observation after it, before any reset.

    Sampled ones have a `weight` each where they were not sampled uniformly.
    """

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    terminated: Array
    weight: Array | None = None


class Replay(ABC):
    """How transitions are kept in a buffer and taken from it (abstract); like a learner it is static.

    The transition in slot c of environment n has the index n * `length` + c.
    """

    length: int

    @abstractmethod
    def init(self) -> Any:
        """An empty buffer."""

    @abstractmethod
    def add(self, buffer: Any, step: Transition, begun: Array | None) -> tuple[Any, Array]:
        """The buffer with one more step of every environment, and its slots [N]; the oldest make room.

        `begun` says which observations are the first of an episode, None where it is not known.
        """

    @abstractmethod
    def ready(self, buffer: Any) -> Array:
        """Which slots [N, C] have a transition that can be sampled."""

    @abstractmethod
    def draw(self, buffer: Any, bits: Array) -> Array:
        """The index of a transition for each of the random bits, uniformly among those that are ready."""

    @abstractmethod
    def take(self, buffer: Any, index: Array) -> Transition:
        """The transitions at these indices."""


class ReplayBuffer(NamedTuple):
    """Transitions [N, C, ...], and how many steps each environment has ever added [N]: the same for all."""

    transitions: Transition
    added: Array


class TransitionReplay(Replay):
    """Transitions with both of their observations, of `count` environments `length` each."""

    def __init__(self, env: FunctionalEnv, count: int, length: int, storage: Any) -> None:
        self._env, self._count, self.length, self._storage = env, count, length, storage

    def init(self) -> ReplayBuffer:
        slots = (self._count, self.length)
        observation = jnp.zeros((*slots, *self._env.observation_shape), self._storage)
        zeros, terminated = jnp.zeros(slots), jnp.zeros(slots, bool)
        transitions = Transition(observation, empty_actions(self._env, slots), zeros, observation, terminated)
        return ReplayBuffer(transitions, jnp.zeros(self._count, jnp.int32))

    def add(self, buffer: ReplayBuffer, step: Transition, begun: Array | None) -> tuple[ReplayBuffer, Array]:
        here = buffer.added[0] % self.length
        transitions = jax.tree.map(
            lambda room, x: lax.dynamic_update_index_in_dim(room, x.astype(room.dtype), here, 1),
            buffer.transitions,
            step,
        )
        return ReplayBuffer(transitions, buffer.added + 1), jnp.full(self._count, here)

    def ready(self, buffer: ReplayBuffer) -> Array:
        return jnp.arange(self.length) < buffer.added[:, None]

    def draw(self, buffer: ReplayBuffer, bits: Array) -> Array:
        filled = jnp.minimum(buffer.added[0], self.length).astype(jnp.uint32)
        drawn = bits % (filled * self._count)
        return (drawn % self._count * self.length + drawn // self._count).astype(jnp.int32)

    def take(self, buffer: ReplayBuffer, index: Array) -> Transition:
        return jax.tree.map(lambda x: x[index // self.length, index % self.length], buffer.transitions)


def empty_actions(env: FunctionalEnv, slots: tuple[int, int]) -> Array:
    """Room for the actions of so many slots."""
    if isinstance(env.actions, Discrete):
        return jnp.zeros(slots, jnp.int32)
    return jnp.zeros((*slots, distributions.num_outputs(env.actions)))
