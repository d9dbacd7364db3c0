"""Environments of MuJoCo Playground as problems of our own form, simulated by MJX."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from subprocess import CalledProcessError
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from mujoco_playground import registry  # pyright: ignore[reportMissingImports]

from operant.envs.functional.env import Continuous, FunctionalEnv, Outcome, select, unnamed
from operant.errors import UsageError

PREFIX = "playground/"
LIMIT = 1000  # of environments whose configuration names no `episode_length`
SIMULATOR = {"impl": "jax"}  # MJX in JAX resumes exactly; its Warp kernels need CUDA and promise nothing of the kind


class Timed(NamedTuple):
    """The library's own state and the steps of the episode so far."""

    inner: Any
    time: Array


@dataclass(frozen=True)
class PlaygroundEnv(FunctionalEnv):
    """One of Playground's environments; actions lie between -1 and 1, and each is played `action_repeat` times.

    `overrides` are settings of its configuration as JSON, so that instances can be hashed. Where observations are
    several arrays, an agent sees the one called `state`, which a robot could measure, or else all of them.
    """

    name: str
    title: str
    limit: int
    action_repeat: int = 1
    overrides: str = "{}"

    @cached_property
    def _library(self) -> Any:
        try:
            return registry.load(self.title, config_overrides=json.loads(self.overrides))
        except Exception as problem:  # code of others, which may also want to download its models
            raise _not_loaded(self.name, problem) from problem

    @cached_property
    def observation_shape(self) -> tuple[int, ...]:
        return jax.eval_shape(lambda: self.reset(jax.random.key(0))[1]).shape

    @cached_property
    def actions(self) -> Continuous:
        return Continuous(-1.0, 1.0, (int(self._library.action_size),))

    def reset(self, key: Array) -> tuple[Timed, Array]:
        state = Timed(self._library.reset(jax.random.key_data(key)), jnp.int32(0))
        return state, self.observe(state)

    def step(self, state: Timed, action: Array, key: Array) -> tuple[Timed, Outcome]:
        action = jnp.clip(action, -1.0, 1.0)

        def play(inner: Any, _: None) -> tuple[Any, Array]:
            after = self._library.step(inner, action)
            # A step may give another precision than a reset, which no loop of a compiled program could carry.
            after = jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), after, inner)
            return after, after.reward

        inner, rewards = lax.scan(play, state.inner, None, self.action_repeat)
        after = Timed(inner, state.time + 1)
        reward = rewards.sum().astype(jnp.float32)
        return after, Outcome(self.observe(after), reward, inner.done > 0, after.time >= self.limit, {})

    def observe(self, state: Timed) -> Array:
        seen = state.inner.obs
        if isinstance(seen, dict):
            seen = seen.get("state", seen)
        return jnp.concatenate([jnp.ravel(part).astype(jnp.float32) for part in jax.tree.leaves(seen)])

    def advance(self, states: Timed, actions: Array, keys: Array) -> tuple[Timed, Array, Outcome]:
        """As for any problem; fresh episodes, which cost as much as a step, are made only when one is over."""
        keys = jax.vmap(jax.random.split)(keys)
        states, outcome = jax.vmap(self.step)(states, actions, keys[:, 0])
        over = outcome.terminated | outcome.truncated

        def restarted() -> tuple[Timed, Array]:
            fresh, first = jax.vmap(self.reset)(unnamed(keys[:, 1]))
            chosen = jax.tree.map(lambda new, old: select(over, new, old), fresh, states)
            return chosen, select(over, first, outcome.observation)

        states, observation = lax.cond(over.any(), restarted, lambda: (states, outcome.observation))
        return states, observation, outcome


def names() -> list[str]:
    """Every environment of Playground."""
    return sorted(registry.ALL_ENVS)


def make(name: str, limit: int | None, settings: dict[str, Any]) -> PlaygroundEnv:
    """The environment that Playground calls `name`; `settings` are of its configuration, but for `action_repeat`."""
    config: Any = registry.get_default_config(name)
    repeat = settings.pop("action_repeat", config.get("action_repeat", 1))
    if not isinstance(repeat, int) or repeat < 1:
        raise UsageError(f"env.kwargs.action_repeat: {repeat!r} is no count", remedy="-s env.kwargs.action_repeat=1")
    simulator = SIMULATOR if "impl" in config else {}
    steps = limit or max(1, config.get("episode_length", LIMIT) // repeat)
    env = PlaygroundEnv(f"{PREFIX}{name}", name, steps, repeat, json.dumps({**simulator, **settings}, sort_keys=True))
    _ = env._library  # a wrong setting is told here, before anything is compiled
    return env


def _not_loaded(name: str, problem: Exception) -> UsageError:
    cause = (str(problem).splitlines() or [type(problem).__name__])[0].strip("'\"")
    remedy = "connect to the network: Playground downloads the models of its robots by git when one is first used"
    if not isinstance(problem, CalledProcessError):
        remedy = f"env.kwargs may hold {', '.join(sorted(registry.get_default_config(name.removeprefix(PREFIX))))}"
    return UsageError(f"env.name: MuJoCo Playground cannot make {name}: {cause}", remedy=remedy)
