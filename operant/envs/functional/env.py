"""Problems as pure functions in JAX, so that a learner can compile them together with itself.

A problem is a static object that holds no arrays: what changes is the state, a pytree that goes in
and comes out. Nothing here resets by itself but `advance`, which plays many copies side by side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

State = Any
Reduction = Literal["mean", "max"]


@dataclass(frozen=True)
class Discrete:
    """Actions counted from 0 to `n - 1`."""

    n: int


@dataclass(frozen=True)
class Continuous:
    """Real actions of a shape, each number between `low` and `high`."""

    low: float
    high: float
    shape: tuple[int, ...]


class Outcome(NamedTuple):
    """What one step led to, before any reset.

    `metrics` are scalars of this step, the same names at every one; an engine reduces each over
    steps and environments as the problem's `reductions` say, by its mean where they do not.
    `facts` are what is to be written down of the episode if this step ends it: scalars under the
    names that the problem's own `facts` lists.
    """

    observation: Array
    reward: Array
    terminated: Array
    truncated: Array
    metrics: dict[str, Array]
    facts: dict[str, Array] = {}  # noqa: RUF012 - never written to; JAX takes no frozen mapping


class FunctionalEnv(ABC):
    """One problem. Instances are hashable and compare by what they are, since they are static in compiled programs."""

    name: str
    observation_shape: tuple[int, ...]
    actions: Discrete | Continuous
    masked: bool = False
    on_host: bool = False  # whether it steps outside compiled programs, which then know its spaces only
    reductions: Mapping[str, Reduction] = MappingProxyType({})
    facts: tuple[str, ...] = ()

    def storage(self, wanted: str) -> Any:
        """The type in which observations are kept to learn from, where numbers are to be of type `wanted`."""
        return jnp.dtype(wanted)

    @abstractmethod
    def reset(self, key: Array) -> tuple[State, Array]:
        """A fresh state and its observation; `key` is a typed PRNG key."""

    @abstractmethod
    def step(self, state: State, action: Array, key: Array) -> tuple[State, Outcome]:
        """Play one action. Never resets; running out of time is `truncated`."""

    @abstractmethod
    def observe(self, state: State) -> Array:
        """What an agent sees of a state."""

    def mask(self, state: State) -> Array:
        """Which actions are legal, bool[n]; only asked where `masked`, and never empty in a state that is not over."""
        raise NotImplementedError(f"{self.name} has no action masks")

    def advance(self, states: State, actions: Array, keys: Array) -> tuple[State, Array, Outcome]:
        """One step of many copies along the leading axis, restarting those that are over.

        The observations returned are what to act on next, those of fresh episodes included; the
        outcome's are from before the reset. A fresh episode begins with an `unnamed` key, which no
        evaluation has.
        """
        keys = jax.vmap(jax.random.split)(keys)
        states, outcome = jax.vmap(self.step)(states, actions, keys[:, 0])
        fresh, first = jax.vmap(self.reset)(unnamed(keys[:, 1]))
        over = outcome.terminated | outcome.truncated
        states = jax.tree.map(lambda new, old: select(over, new, old), fresh, states)
        return states, select(over, first, outcome.observation), outcome


def unnamed(keys: Array) -> Array:
    """Keys to begin training episodes with, none of which is that of a seed.

    The key of a seed has 0 as its first word (seeds have 32 bits), and evaluation begins its
    episodes with such keys. A key that has it by chance gets 1 instead.
    """
    words = jax.random.key_data(keys)
    first = words[..., :1]
    words = jnp.concatenate([jnp.where(first == 0, jnp.uint32(1), first), words[..., 1:]], -1)
    return jax.random.wrap_key_data(words, impl=jax.random.key_impl(keys))


def select(condition: Array, yes: Array, no: Array) -> Array:
    """`jnp.where` along the leading axis, for arrays (and PRNG keys) of any rank."""
    shape = condition.shape + (1,) * (yes.ndim - condition.ndim)
    return jnp.where(condition.reshape(shape), yes, no)
