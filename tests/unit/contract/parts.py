"""Environments that keep the contract, and some that break it, one promise each."""

from __future__ import annotations

import random
from typing import Any

import gymnasium as gym
import numpy as np

steps_of_all = 0


class Corridor(gym.Env):
    """Walk to one end of a line; keeps every promise."""

    observation_space = gym.spaces.Box(-10, 10, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, render_mode: str | None = None) -> None:
        self.at = self.time = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.at, self.time = int(self.np_random.integers(-1, 2)), 0
        return self.look(), {}

    def step(self, action: int):
        self.time += 1
        self.at += 1 if action == 1 else -1
        return self.look(), self.reward(), abs(self.at) >= 3, self.time >= 20, {}

    def look(self) -> np.ndarray:
        return np.array([self.at], np.float32)

    def reward(self) -> float:
        return float(self.at >= 3)


class Unseeded(Corridor):
    """Draws from the process's own random state, which no seed reaches."""

    def reward(self) -> float:
        return random.random()


class Remembering(Corridor):
    """Rewards by its age over all episodes, which no checkpoint has."""

    age = 0

    def reward(self) -> float:
        self.age += 1
        return self.age / 1000


class Shared(Corridor):
    """Rewards by a count that training and evaluation share."""

    def reward(self) -> float:
        global steps_of_all
        steps_of_all += 1
        return (steps_of_all % 7) / 7


class Infinite(Corridor):
    """Rewards that are not finite, of which a run says so."""

    def reward(self) -> float:
        return float("inf")
