"""Which environments step on the host, and what a compiled program knows of one that does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import jax.numpy as jnp
import numpy as np
from jax import Array

from operant.envs.functional.env import Continuous, Discrete, FunctionalEnv
from operant.envs.gym import make_env
from operant.envs.vector.actions import ActionMap
from operant.envs.vector.base import observation_form
from operant.envs.vector.masks import offers_mask
from operant.spec.settings.sections import EnvSpec


@dataclass(frozen=True)
class HostEnv(FunctionalEnv):
    """The spaces of an environment that steps on the host; actions are in the policy's scale, which is [-1, 1].

    `limit` is the time limit that Gymnasium knows of; None where it knows of none.
    """

    name: str
    observation_shape: tuple[int, ...]
    images: bool
    actions: Discrete | Continuous
    limit: int | None
    masked: bool = False
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


def describe_host_env(spec: EnvSpec) -> HostEnv:
    """The spaces of a spec's environment, from one that is made and closed again."""
    env = make_env(spec)
    shape, dtype = observation_form(env.observation_space)
    space = ActionMap(env.action_space)
    actions = Discrete(space.size) if space.discrete else Continuous(-1.0, 1.0, (space.size,))
    limit = None if env.spec is None else env.spec.max_episode_steps
    masked = space.discrete and offers_mask(env)
    env.close()
    return HostEnv(spec.name, shape, dtype == np.uint8, actions, limit, masked)
