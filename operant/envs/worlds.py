"""How the copies of one environment are stepped: one after another here, and elsewhere in other ways.

`Worlds` is the seam between an environment's own machinery and `VectorEnv`, which keeps seeds,
scores and the log that makes every episode replayable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete

from operant.errors import RunError, UsageError


@dataclass(frozen=True)
class Outcome:
    """What one step did to every world. `over` says which must be restarted before their next step.

    A world may be terminated for the learner and yet not over: a life was lost, the game goes on.
    `mask` [N, actions] says what is legal in `obs`; it is None where the environment offers none.
    """

    obs: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    over: np.ndarray
    mask: np.ndarray | None


class Worlds(ABC):
    """`num` copies of one environment. Subclasses are final."""

    num: int
    action_space: gym.Space
    obs_shape: tuple[int, ...]
    obs_dtype: np.dtype
    stack: int = 1  # frames of which an observation is made, along its first axis, where each step brings one
    foresees: bool = False

    @abstractmethod
    def restart(self, index: int, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Begin a new episode in one world; its first observation and what is legal there."""

    def foresee(self, index: int, seed: int) -> None:
        """Make a world's next episode ready in the meantime; asked only where `foresees` says so."""
        raise NotImplementedError

    @abstractmethod
    def step(self, actions: list[Any], playing: np.ndarray | None = None) -> Outcome:
        """Play one action in every world, or only where `playing`; the others stay as they are."""

    @abstractmethod
    def close(self) -> None:
        """Release every world."""


class SerialWorlds(Worlds):
    """Worlds in this process, one after another: the fastest way for light environments.

    `at` is the world that is being played, for whoever must say which one failed.
    """

    def __init__(self, envs: list[gym.Env]) -> None:
        self.num = len(envs)
        self.at = 0
        self.envs = envs
        self.action_space = envs[0].action_space
        self.obs_shape, self.obs_dtype = observation_form(envs[0].observation_space)
        self._masks = MaskReader(envs)
        self._obs = np.zeros((self.num, *self.obs_shape), self.obs_dtype)

    def restart(self, index: int, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
        self.at = index
        self._obs[index], info = self.envs[index].reset(seed=seed)
        return self._obs[index], self._masks.one(index, info)

    def step(self, actions: list[Any], playing: np.ndarray | None = None) -> Outcome:
        obs = self._obs
        reward = np.zeros(self.num)
        terminated = np.zeros(self.num, bool)
        truncated = np.zeros(self.num, bool)
        masked = self._masks.offered
        for i, action in enumerate(actions):
            if playing is None or playing[i]:
                self.at = i
                obs[i], reward[i], terminated[i], truncated[i], info = self.envs[i].step(action)
                if masked:
                    self._masks.one(i, info)
        return Outcome(obs.copy(), reward, terminated, truncated, terminated | truncated, self._masks.all())

    def close(self) -> None:
        for env in self.envs:
            env.close()


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
        """The mask of world `index` after a reset or a step that gave `info`."""
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
        """The newest masks of all worlds; None where there are none."""
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


def observation_form(space: gym.Space) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and storage type of one observation: images stay bytes, all else is float32."""
    if not isinstance(space, Box):
        raise UsageError(f"observation space {space} is not an array", remedy="flatten it in the environment")
    return space.shape, np.dtype(np.uint8) if is_image(space) else np.dtype(np.float32)


def is_image(space: gym.Space) -> bool:
    """Whether observations are pictures: bytes on two axes, or three with channels, or four with a stack of them."""
    return isinstance(space, Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3, 4)
