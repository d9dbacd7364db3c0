"""Five probe problems: the smallest ones that each break a different part of a learner.

After Andy Jones's advice: a constant reward (is the value learnt at all), a value that depends on
the observation, a reward one step later (discounting), a reward that depends on the action, and
one that depends on both. Episodes last one or two steps, so a healthy learner needs seconds.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from operant.envs.builtin import PROBES

SIDE = 12  # of a picture


class Probe(gym.Env[np.ndarray, Any]):
    """One probe problem; `continuous` swaps the two actions for one real one in [-1, 1].

    With `pixels` the observation is a picture: its left half is lit for -1, its right half for 1.
    """

    def __init__(self, kind: str, continuous: bool = False, pixels: bool = False) -> None:
        if kind not in PROBES:
            raise ValueError(f"unknown probe {kind!r}: choose one of {', '.join(PROBES)}")
        self.kind = kind
        self.continuous = continuous
        self.pixels = pixels
        picture = gym.spaces.Box(0, 255, (SIDE, SIDE, 1), np.uint8)
        self.observation_space = picture if pixels else gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32) if continuous else gym.spaces.Discrete(2)
        self._seen = 0.0
        self._step = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed, options=options)
        varies = self.kind in ("observation", "both")
        self._seen = float(self.np_random.choice((-1.0, 1.0))) if varies else 0.0
        self._step = 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        reward = self._reward(action)
        self._step += 1
        last = 2 if self.kind == "discount" else 1
        if self.kind == "discount":
            self._seen = 1.0
        return self._observe(), reward, self._step >= last, False, {}

    def _reward(self, action: Any) -> float:
        if self.kind == "constant":
            return 1.0
        if self.kind == "observation":
            return self._seen
        if self.kind == "discount":
            return float(self._step == 1)
        wanted = self._seen if self.kind == "both" else 0.5
        if self.continuous:
            return -float((np.asarray(action).reshape(-1)[0] - wanted) ** 2)
        return 1.0 if int(action) == int(wanted > 0) else -1.0

    def _observe(self) -> np.ndarray:
        if self.pixels:
            columns = np.arange(SIDE) < SIDE // 2 if self._seen < 0 else np.arange(SIDE) >= SIDE // 2
            lit = 255 * columns * (self._seen != 0)
            return np.broadcast_to(lit[None, :, None], (SIDE, SIDE, 1)).astype(np.uint8)
        return np.array([self._seen], np.float32)
