"""Environments of Brax as problems of our own form."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from brax import envs  # pyright: ignore[reportMissingImports]
from jax import Array

from operant.envs.functional.env import Continuous, FunctionalEnv, Outcome

LIMIT = 1000


class Timed(NamedTuple):
    """The library's own state and the steps of the episode so far."""

    inner: Any
    time: Array


@dataclass(frozen=True)
class BraxEnv(FunctionalEnv):
    """One of Brax's environments; actions lie between -1 and 1."""

    name: str
    title: str
    limit: int = LIMIT
    settings: tuple[tuple[str, Any], ...] = field(default=())

    @cached_property
    def _library(self) -> envs.Env:
        return envs.get_environment(self.title, **dict(self.settings))

    @cached_property
    def observation_shape(self) -> tuple[int, ...]:
        return (int(self._library.observation_size),)  # pyright: ignore[reportArgumentType]

    @cached_property
    def actions(self) -> Continuous:
        return Continuous(-1.0, 1.0, (self._library.action_size,))

    def reset(self, key: Array) -> tuple[Timed, Array]:
        state = Timed(self._library.reset(jax.random.key_data(key)), jnp.int32(0))
        return state, self.observe(state)

    def step(self, state: Timed, action: Array, key: Array) -> tuple[Timed, Outcome]:
        inner = self._library.step(state.inner, jnp.clip(action, -1.0, 1.0))
        after = Timed(inner, state.time + 1)
        reward = jnp.asarray(inner.reward, jnp.float32)
        return after, Outcome(self.observe(after), reward, inner.done > 0, after.time >= self.limit, {})

    def observe(self, state: Timed) -> Array:
        return jnp.asarray(state.inner.obs, jnp.float32)


def names() -> list[str]:
    """Every environment of Brax."""
    return sorted(envs._envs)


def make(name: str, limit: int | None, settings: dict[str, Any]) -> BraxEnv:
    """The environment that Brax calls `name`."""
    return BraxEnv(f"brax:{name}", name, limit or LIMIT, tuple(sorted(settings.items())))
