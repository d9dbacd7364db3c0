"""Environments of which only a part is seen: what a policy then needs is a memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box


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


def register_partial() -> None:
    """Make `operant/Partial-v0` (for any base) and `operant/CartPoleNoVelocity-v1` known; harmless when repeated."""
    entry = "operant.envs.partial:make_partial"
    if "operant/Partial-v0" not in gym.registry:
        gym.register("operant/Partial-v0", entry_point=entry)
        hidden = {"base": "CartPole-v1", "keep": [0, 2]}
        gym.register("operant/CartPoleNoVelocity-v1", entry_point=entry, kwargs=hidden, max_episode_steps=500)
