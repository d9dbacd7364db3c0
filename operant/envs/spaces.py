"""What an environment and a policy exchange, and whether a policy that was trained in one can play in another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete

from operant.envs import registry
from operant.envs.check import check_env
from operant.envs.functional.find import LIBRARIES, find_functional, steps_on_host
from operant.envs.vector.actions import ActionMap
from operant.envs.vector.base import observation_form
from operant.envs.vector.masks import offers_mask

if TYPE_CHECKING:
    from operant.spec.settings.sections import EnvSpec


@dataclass(frozen=True)
class Spaces:
    """Observations, which are images or real numbers, and actions, which may be `masked`."""

    shape: tuple[int, ...]
    images: bool
    actions: ActionMap
    masked: bool

    def difference(self, other: Spaces) -> str | None:
        """What of `other` a policy of these spaces cannot see or do; None where it can play there."""
        if (self.shape, self.images) != (other.shape, other.images):
            return f"its observations are {other._observations()}, not {self._observations()}"
        if not self.actions.matches(other.actions):
            return f"its actions are {other.actions.describe()}, not {self.actions.describe()}"
        return None

    def _observations(self) -> str:
        return f"{'images' if self.images else 'numbers'} of shape {self.shape}"


def spaces_of(spec: EnvSpec, engine: str) -> Spaces:
    """Those of an environment in the form in which an engine steps it; `UsageError` where it cannot be made."""
    return _functional(spec) if engine == "jax" and not steps_on_host(spec) else _gymnasium(spec)


def only_in_jax(name: str) -> bool:
    """Whether there is no form of an environment that Gymnasium could make."""
    if name.startswith(tuple(LIBRARIES)):
        return True
    ident = name.partition(":")[2]
    if name in gym.registry or (ident and not ident.isidentifier()):
        return False
    declared = registry.declaration(name)
    return declared.functional is not None and declared.gymnasium is None


def _gymnasium(spec: EnvSpec) -> Spaces:
    env = check_env(spec)
    actions = ActionMap(env.action_space)
    shape, dtype = observation_form(env.observation_space)
    found = Spaces(shape, dtype == np.uint8, actions, actions.discrete and offers_mask(env))
    env.close()
    return found


def _functional(spec: EnvSpec) -> Spaces:
    env = find_functional(spec)
    actions: Any = env.actions  # JAX need not be loaded to know its kind
    space = Discrete(actions.n) if hasattr(actions, "n") else Box(actions.low, actions.high, actions.shape)
    return Spaces(env.observation_shape, False, ActionMap(space), env.masked)
