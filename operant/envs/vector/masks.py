"""Which actions are legal, as environments say it."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Discrete

from operant.errors import RunError


class MaskReader:
    """Action masks of environments that offer them, as `info["action_mask"]` or `env.action_masks()`.

    Which way an environment offers is found out at its first reset and kept to.
    """

    def __init__(self, envs: list[gym.Env]) -> None:
        self._methods = [_mask_method(env) for env in envs]
        space = envs[0].action_space
        self._actions = int(space.n) if isinstance(space, Discrete) else 0
        self._last: np.ndarray | None = None

    def one(self, index: int, info: dict[str, Any]) -> np.ndarray | None:
        """The mask of environment `index` after a reset or a step that gave `info`."""
        mask = self._read(index, info)
        if mask is None:
            return None
        if self._last is None:
            self._last = np.ones((len(self._methods), self._actions), bool)
        self._last[index] = mask
        return self._last[index]

    @property
    def offered(self) -> bool:
        """Whether there has been a mask yet."""
        return self._last is not None

    def all(self) -> np.ndarray | None:
        """The newest masks of all environments; None where there are none."""
        return None if self._last is None else self._last.copy()

    def _read(self, index: int, info: dict[str, Any]) -> np.ndarray | None:
        if not self._actions:
            return None
        method = self._methods[index]
        if "action_mask" in info:
            mask = np.asarray(info["action_mask"], bool)
        elif method is not None:
            mask = np.asarray(method(), bool)
        else:
            return None
        if mask.shape != (self._actions,):
            raise RunError(
                f"the environment's action mask has shape {mask.shape}, but it has {self._actions} actions",
                remedy="give one true or false for every action",
            )
        return mask


def offers_mask(env: gym.Env) -> bool:
    """Whether `env` says at its reset which actions are legal."""
    _, info = env.reset(seed=0)
    return MaskReader([env]).one(0, info) is not None


def _mask_method(env: gym.Env) -> Any:
    return env.get_wrapper_attr("action_masks") if env.has_wrapper_attr("action_masks") else None
