"""A grid world of my own: find the goal, step by step.

    operant check --contract my_env:MyEnv    does it keep what Operant promises?
    operant train my_env.yaml                trains PPO on it

In a spec it is named by its module and class (env.name: my_env:MyEnv), and `env.kwargs` are the arguments of
`__init__`. The module is found where Python finds it, or in the folder that you call `operant` from.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

MOVES = ((0, 1), (0, -1), (1, 0), (-1, 0))


class MyEnv(gym.Env):
    """A square grid with a goal somewhere; the agent sees where it is and where the goal is."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"]}

    def __init__(self, size: int = 5, max_steps: int = 40, render_mode: str | None = None) -> None:
        self.size, self.max_steps, self.render_mode = size, max_steps, render_mode
        # Vectors and images are Box, a choice of one is Discrete; a Box of actions makes it continuous control.
        self.observation_space = gym.spaces.Box(0.0, 1.0, (4,), np.float32)
        self.action_space = gym.spaces.Discrete(len(MOVES))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode. It must follow from `seed` and the actions alone: a resumed run plays it again."""
        # Seeds self.np_random. Draw from nothing else: `random` and `np.random` would differ from run to run.
        super().reset(seed=seed)
        self.steps = 0
        self.agent = self.np_random.integers(self.size, size=2)
        self.goal = self.np_random.integers(self.size, size=2)
        return self._observation(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Move; the episode ends at the goal (terminated), or when time is up (truncated: its value goes on)."""
        self.steps += 1
        self.agent = np.clip(self.agent + MOVES[action], 0, self.size - 1)
        terminated = bool((self.agent == self.goal).all())
        truncated = not terminated and self.steps >= self.max_steps
        # The score of an episode is the sum of its rewards. Keep rewards near 1 in size, or set normalize_reward.
        reward = 1.0 if terminated else -0.02
        return self._observation(), reward, terminated, truncated, {}

    def render(self) -> str:
        """What `operant watch` shows; leave it out, with `metadata`, if nobody will look on."""
        cells = np.full((self.size, self.size), ".")
        cells[tuple(self.goal)], cells[tuple(self.agent)] = "G", "A"
        return "\n".join(" ".join(row) for row in cells)

    def _observation(self) -> np.ndarray:
        """Of the type and shape that `observation_space` says, and new each time."""
        return (np.concatenate([self.agent, self.goal]) / (self.size - 1)).astype(np.float32)
