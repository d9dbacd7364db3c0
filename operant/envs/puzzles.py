"""Two problems that show whether a learner keeps to legal actions, and whether it remembers.

Both are tiny, and neither can be solved by a learner that lacks the faculty in question: what is
legal, and what the cue was, cannot be told from the observation.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

VALUES = np.linspace(0, 1, 4, dtype=np.float32)
ILLEGAL_REWARD = -10.0


class Masked(gym.Env[np.ndarray, Any]):
    """Take the action of the highest value in sight that is legal; an illegal one ends the episode at a loss.

    Four values in [0, 1] are seen in a new order at every step. The chosen one is the reward. Any set
    of actions may be legal, and only `info["action_mask"]` tells which.
    """

    def __init__(self, steps: int = 10) -> None:
        self.observation_space = gym.spaces.Box(0.0, 1.0, (4,), np.float32)
        self.action_space = gym.spaces.Discrete(4)
        self._steps = steps
        self._left = 0
        self._values = VALUES
        self._legal = np.ones(4, bool)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed, options=options)
        self._left = self._steps
        return self._deal()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        legal, reward = bool(self._legal[action]), float(self._values[action])
        self._left -= 1
        obs, info = self._deal()
        return obs, reward if legal else ILLEGAL_REWARD, not legal or self._left == 0, False, info

    def _deal(self) -> tuple[np.ndarray, dict]:
        self._values = self.np_random.permutation(VALUES)
        pattern = int(self.np_random.integers(1, 16))
        self._legal = np.array([pattern >> bit & 1 for bit in range(4)], bool)
        return self._values, {"action_mask": self._legal.copy()}


class Recall(gym.Env[np.ndarray, Any]):
    """Do at the last step what the first observation said: a cue of -1 or 1, then nothing but zeros.

    The second number seen is 1 when the answer is due. The right answer earns 1 and a wrong one -1.
    """

    def __init__(self, delay: int = 6) -> None:
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self._delay = delay
        self._cue = 0
        self._step = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed, options=options)
        self._cue = int(self.np_random.integers(2))
        self._step = 0
        return np.array([2 * self._cue - 1, 0], np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self._step += 1
        over = self._step > self._delay
        reward = (1.0 if action == self._cue else -1.0) if over else 0.0
        return np.array([0, self._step == self._delay], np.float32), reward, over, False, {}


def register_puzzles() -> None:
    """Make the puzzles known to Gymnasium as `operant/Masked-v0` and `operant/Recall-v0`; harmless when repeated."""
    for puzzle in (Masked, Recall):
        name = f"operant/{puzzle.__name__}-v0"
        if name not in gym.registry:
            gym.register(name, entry_point=f"operant.envs.puzzles:{puzzle.__name__}", max_episode_steps=1000)
