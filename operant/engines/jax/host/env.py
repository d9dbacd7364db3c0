"""Which environments step on the host, and what a compiled program knows of one that does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import jax.numpy as jnp
import numpy as np
from gymnasium.wrappers import FlattenObservation
from jax import Array

from operant.envs.find import plays_natively
from operant.envs.functional.env import Continuous, Discrete, FunctionalEnv
from operant.envs.gym import make_env
from operant.envs.vector.actions import ActionMap
from operant.envs.vector.base import observation_form
from operant.envs.vector.masks import offers_mask
from operant.spec.settings.sections import EnvSpec


@dataclass(frozen=True)
class HostEnv(FunctionalEnv):
    """The spaces of an environment that steps on the host; actions are in the policy's scale, which is [-1, 1].

    `limit` is the time limit that Gymnasium knows of; None where it knows of none. An observation is a `stack` of
    frames, along its first axis, of which each step brings one; or a single one.
    """

    name: str
    observation_shape: tuple[int, ...]
    images: bool
    actions: Discrete | Continuous
    limit: int | None
    masked: bool = False
    stack: int = 1
    on_host = True

    def storage(self, wanted: str) -> Any:
        """Images stay bytes: a quarter of the memory, and the network scales them itself."""
        return jnp.dtype(jnp.uint8 if self.images else wanted)

    def reset(self, key: Array) -> NoReturn:
        raise NotImplementedError(f"{self.name} steps on the host")

    def step(self, state: Any, action: Array, key: Array) -> NoReturn:
        raise NotImplementedError(f"{self.name} steps on the host")

    def observe(self, state: Any) -> NoReturn:
        raise NotImplementedError(f"{self.name} steps on the host")


class HostSpaces:
    """The spaces of a spec's environment as Gymnasium has them, from one that is made and closed again.

    `flattened` is the space of observations that are flattened to vectors; None where they are arrays by themselves.
    """

    def __init__(self, spec: EnvSpec) -> None:
        env = make_env(spec)
        self.obs_shape, self.obs_dtype = observation_form(env.observation_space)
        self.flattened = env.env.observation_space if isinstance(env, FlattenObservation) else None
        self.actions = ActionMap(env.action_space)
        self.limit = None if env.spec is None else env.spec.max_episode_steps
        self.masked = self.actions.discrete and offers_mask(env)
        env.close()


def describe_host_env(spec: EnvSpec) -> HostEnv:
    """What a compiled program knows of a spec's environment."""
    spaces = HostSpaces(spec)
    size, shape, images = spaces.actions.size, spaces.obs_shape, spaces.obs_dtype == np.uint8
    actions = Discrete(size) if spaces.actions.discrete else Continuous(-1.0, 1.0, (size,))
    stack = shape[0] if plays_natively(spec) else 1
    return HostEnv(spec.name, shape, images, actions, spaces.limit, spaces.masked, stack)
