"""Vector envs: `num` copies of one environment, stepped together; here the base and the one that steps them in turn.

`AutoresetVectorEnv` wraps one of them and keeps seeds, scores and the log that makes every episode replayable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box

from operant.envs.vector.masks import MaskReader
from operant.errors import UsageError


class Outcome(NamedTuple):
    """What one step did to every environment. `over` says which must be reset before their next step.

    An environment may be terminated for the learner and yet not over: a life was lost, the game goes on.
    `mask` [N, actions] says what is legal in `obs`; it is None where the environment offers none.
    """

    obs: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    over: np.ndarray
    mask: np.ndarray | None


class VectorEnv(ABC):
    """`num` copies of one environment. Subclasses are final.

    `at` is the environment that is being stepped where that is known, so that a failure can name it.
    """

    num: int
    at: int = 0
    action_space: gym.Space
    obs_shape: tuple[int, ...]
    obs_dtype: np.dtype
    stack: int = 1  # frames of which an observation is made, along its first axis, where each step brings one
    prefetches_resets: bool = False

    @abstractmethod
    def reset(self, index: int, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Begin a new episode in one environment; its first observation and what is legal there."""

    def reset_many(self, seeds: Mapping[int, int]) -> dict[int, tuple[np.ndarray, np.ndarray | None]]:
        """`reset` in every environment that has a seed here; together, where environments run side by side."""
        return {index: self.reset(index, seed) for index, seed in seeds.items()}

    def prefetch_reset(self, index: int, seed: int) -> None:
        """Prepare an environment's next reset in the meantime; called only where `prefetches_resets`."""
        raise NotImplementedError

    @abstractmethod
    def step(self, actions: list[Any], playing: np.ndarray | None = None) -> Outcome:
        """Play one action in every environment, or only where `playing`; the others stay as they are."""

    def send(self, actions: list[Any], playing: np.ndarray | None = None) -> None:
        """Begin a step that `receive` ends; environments that step elsewhere do so meanwhile."""
        self._sent = actions, playing

    def receive(self) -> Outcome:
        """What the step did that `send` began."""
        return self.step(*self._sent)

    @abstractmethod
    def close(self) -> None:
        """Close every environment."""


class SyncVectorEnv(VectorEnv):
    """Environments in this process, one after another: the fastest way for light ones."""

    def __init__(self, envs: list[gym.Env]) -> None:
        self.num = len(envs)
        self.envs = envs
        self.action_space = envs[0].action_space
        self.obs_shape, self.obs_dtype = observation_form(envs[0].observation_space)
        self._masks = MaskReader(envs)
        self._obs = np.zeros((self.num, *self.obs_shape), self.obs_dtype)

    def reset(self, index: int, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
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


def observation_form(space: gym.Space) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and storage type of one observation: images stay bytes, all else is float32."""
    if not isinstance(space, Box):
        raise UsageError(f"observation space {space} is not an array", remedy="flatten it in the environment")
    return space.shape, np.dtype(np.uint8) if is_image(space) else np.dtype(np.float32)


def is_image(space: gym.Space) -> bool:
    """Whether observations are pictures: bytes on two axes, or three with channels, or four with a stack of them."""
    return isinstance(space, Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3, 4)
