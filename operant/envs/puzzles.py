"""Small environments that show whether a learner keeps to legal actions, and whether it remembers.

None can be solved by a learner that lacks the faculty in question: what is legal, what the cue was, and how fast a pole
moves cannot be read off the observation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box

VALUES = np.linspace(0, 1, 4, dtype=np.float32)
ILLEGAL_REWARD = -10.0


class Masked(gym.Env[np.ndarray, Any]):
    """Take the action of the highest value in sight that is legal; an illegal one ends the episode at a loss.

    Four values in [0, 1] are seen in a new order at every step. The chosen one is the reward. Any set
    of actions may be legal, and only `info["action_mask"]` says which.
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


class Partial(gym.ObservationWrapper):
    """An environment whose observation is some numbers of the whole one, those at `keep`, in that order."""

    def __init__(self, env: gym.Env, keep: Sequence[int]) -> None:
        super().__init__(env)
        whole = env.observation_space
        if not isinstance(whole, Box) or len(whole.shape) != 1:
            raise ValueError(f"only a vector can be seen in part, and the observations are {whole}")
        if not keep or not all(0 <= index < whole.shape[0] for index in keep):
            raise ValueError(f"keep {list(keep)} must name numbers from 0 to {whole.shape[0] - 1}")
        self._keep = list(keep)
        self.observation_space = Box(whole.low[self._keep], whole.high[self._keep], dtype=whole.dtype.type)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        """The part of an observation that is seen."""
        return observation[self._keep]


def make_partial(base: str, keep: Sequence[int], **options: Any) -> gym.Env:
    """The environment `base`, seen only in part; `options` are its own."""
    return Partial(gym.make(base, disable_env_checker=True, **options), keep)
