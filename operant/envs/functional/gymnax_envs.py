"""Environments of gymnax as problems of our own form."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import gymnax  # pyright: ignore[reportMissingImports]
import jax.numpy as jnp
from gymnax.environments import spaces  # pyright: ignore[reportMissingImports]
from jax import Array

from operant.envs.functional.env import Continuous, Discrete, FunctionalEnv, Outcome
from operant.errors import UsageError


class GymnaxState(NamedTuple):
    """The library's own state and its last observation, since some of its observations are drawn by chance."""

    inner: Any
    observation: Array


@dataclass(frozen=True)
class GymnaxEnv(FunctionalEnv):
    """One of gymnax's environments, with its observations as one vector of floats."""

    name: str
    title: str
    limit: int | None = None
    settings: tuple[tuple[str, Any], ...] = field(default=())

    @cached_property
    def _library(self) -> tuple[Any, Any]:
        env, params = gymnax.make(self.title, **dict(self.settings))
        return env, params if self.limit is None else replace(params, max_steps_in_episode=self.limit)

    @cached_property
    def observation_shape(self) -> tuple[int, ...]:
        env, params = self._library
        return (prod(env.observation_space(params).shape),)

    @cached_property
    def actions(self) -> Discrete | Continuous:
        env, params = self._library
        space = env.action_space(params)
        if isinstance(space, spaces.Discrete):
            return Discrete(int(space.n))
        if isinstance(space, spaces.Box) and jnp.ptp(jnp.asarray(space.low)) == jnp.ptp(jnp.asarray(space.high)) == 0:
            return Continuous(float(jnp.max(space.low)), float(jnp.max(space.high)), tuple(space.shape))
        raise UsageError(f"env.name: {self.name} has actions {space}, which no algorithm here supports")

    def reset(self, key: Array) -> tuple[GymnaxState, Array]:
        env, params = self._library
        observation, inner = env.reset_env(key, params)
        state = GymnaxState(inner, flat(observation))
        return state, state.observation

    def step(self, state: GymnaxState, action: Array, key: Array) -> tuple[GymnaxState, Outcome]:
        env, params = self._library
        observation, inner, reward, terminated, _ = env.step_env(key, state.inner, action, params)
        after = GymnaxState(inner, flat(observation))
        truncated = jnp.asarray(env.is_truncated(inner, params), bool)
        reward, terminated = jnp.asarray(reward, jnp.float32), jnp.asarray(terminated, bool)
        return after, Outcome(after.observation, reward, terminated, truncated, {})

    def observe(self, state: GymnaxState) -> Array:
        return state.observation


def flat(observation: Any) -> Array:
    """An observation of any shape as one vector of floats."""
    return jnp.ravel(jnp.asarray(observation, jnp.float32))


def names() -> list[str]:
    """Every environment of gymnax."""
    return sorted(gymnax.registered_envs)


def make(name: str, limit: int | None, settings: dict[str, Any]) -> GymnaxEnv:
    """The environment that gymnax calls `name`."""
    return GymnaxEnv(f"gymnax:{name}", name, limit, tuple(sorted(settings.items())))
