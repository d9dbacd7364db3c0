"""The five probe problems of `probe` as pure functions, for learners that compile their environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from operant.envs.functional.classic import Classic, Quantities
from operant.envs.functional.env import Continuous, Discrete

VARIED = ("observation", "both")


@dataclass(frozen=True)
class FunctionalProbe(Classic):
    """One probe; its quantities are the observation and the steps played. `continuous` is as in `probe.Probe`."""

    limit: int = 10
    name: str = "operant/Probe"
    kind: str = "constant"
    continuous: bool = False
    observation_shape: ClassVar = (1,)

    @property
    def actions(self) -> Discrete | Continuous:
        """Two, or one real one between -1 and 1."""
        return Continuous(-1.0, 1.0, (1,)) if self.continuous else Discrete(2)

    def begin(self, key: Array) -> Quantities:
        obs = jax.random.rademacher(key, (), jnp.float32) if self.kind in VARIED else jnp.float32(0.0)
        return obs, jnp.float32(0.0)

    def move(self, at: Quantities, action: Array) -> tuple[Quantities, Array, Array]:
        obs, played = at
        reward = self.reward(obs, played, action)
        last = 2 if self.kind == "discount" else 1
        after = jnp.ones_like(obs) if self.kind == "discount" else obs
        return (after, played + 1), reward, played + 1 >= last

    def reward(self, obs: Array, played: Array, action: Array) -> Array:
        """What an action is worth."""
        if self.kind == "constant":
            return jnp.ones_like(obs)
        if self.kind == "observation":
            return obs
        if self.kind == "discount":
            return (played == 1).astype(jnp.float32)
        wanted = obs if self.kind == "both" else jnp.full_like(obs, 0.5)
        if self.continuous:
            return -jnp.square(action[0] - wanted)
        return jnp.where(action == (wanted > 0), 1.0, -1.0)

    def see(self, at: Quantities) -> Quantities:
        return at[:1]
