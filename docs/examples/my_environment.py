"""A corridor: walk to the right end before the time is up; a step in the wrong direction costs a little.

    operant train my_spec.yaml -s env.name=my_environment:Corridor -s env.max_t=100

An environment is a subclass of `gymnasium.Env`. What it does depends on `reset(seed=...)` and on its actions alone, so
that a run of it can be resumed exactly: randomness comes from `self.np_random`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np


class Corridor(gym.Env[np.ndarray, int]):
    """`length` cells in a row; the walker starts in one of the first three."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, length: int = 12, step_cost: float = 0.01, render_mode: str | None = None) -> None:
        self.length, self.step_cost, self.render_mode = length, step_cost, render_mode
        self.observation_space = gym.spaces.Box(0.0, 1.0, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.at = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.at = int(self.np_random.integers(3))
        return self._observation(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.at = max(0, self.at + (1 if action == 1 else -1))
        arrived = self.at >= self.length - 1
        reward = 1.0 if arrived else -self.step_cost
        return self._observation(), reward, arrived, False, {}

    def render(self) -> np.ndarray:
        """The corridor as a picture of one row of cells, the walker white."""
        picture = np.zeros((16, 16 * self.length, 3), np.uint8)
        picture[:, 16 * self.at : 16 * (self.at + 1)] = 255
        return picture

    def _observation(self) -> np.ndarray:
        return np.array([self.at / self.length, 1 - self.at / self.length], np.float32)
