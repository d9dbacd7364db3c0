"""Between the actions of a policy and those of an environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete

from operant.errors import UsageError


class ActionMap:
    """Actions of one space, both ways.

    Discrete actions are counted from 0. A bounded real action is a number in [-1, 1] to the
    policy, clipped and stretched to the environment's bounds; an unbounded one passes as it is.
    """

    def __init__(self, space: gym.Space) -> None:
        self.discrete = isinstance(space, Discrete)
        if isinstance(space, Discrete):
            self.size = int(space.n)
            self.start = int(space.start)
            self.env_shape: tuple[int, ...] = ()
            self.log_dtype: Any = np.int64
        elif isinstance(space, Box):
            self.size = int(np.prod(space.shape))
            self.env_shape = space.shape
            self.log_dtype = space.dtype
            self.low, self.high = space.low, space.high
            self.bounded = np.isfinite(space.low) & np.isfinite(space.high)
            low, high = np.where(self.bounded, space.low, -1.0), np.where(self.bounded, space.high, 1.0)
            self.middle, self.half = (high + low) / 2, (high - low) / 2
        else:
            raise UsageError(f"action space {space} is not supported", remedy="use Discrete or Box actions")

    def to_env(self, actions: np.ndarray) -> list[Any]:
        """One action per environment, as its `step` takes it: discrete ones are numpy's integers.

        So it is with Gymnasium's own vector envs; `Discrete` spends twice as long on checking Python's integers.
        """
        if self.discrete:
            return list(actions + self.start if self.start else actions)
        shaped = actions.reshape(len(actions), *self.env_shape)
        clipped = np.where(self.bounded, np.clip(shaped, -1.0, 1.0), shaped)
        return list((clipped * self.half + self.middle).astype(self.log_dtype))

    def from_log(self, logged: np.ndarray) -> list[Any]:
        """Logged actions as they were passed to `step`."""
        return list(logged)

    def matches(self, other: ActionMap) -> bool:
        """Whether an action of a policy means the same in both spaces, wherever discrete ones are counted from."""
        if self.discrete or other.discrete:
            return (self.discrete, self.size) == (other.discrete, other.size)
        if self.env_shape != other.env_shape:
            return False
        return np.allclose(self.low, other.low) and np.allclose(self.high, other.high)

    def describe(self) -> str:
        """The actions in words: `2 discrete ones`, `real ones of shape (6,) between -1 and 1`."""
        if self.discrete:
            return f"{self.size} discrete ones"
        return f"real ones of shape {self.env_shape} between {_numbers(self.low)} and {_numbers(self.high)}"


def _numbers(bounds: np.ndarray) -> str:
    """One number where all are equal, else a list of them."""
    distinct = np.unique(bounds)
    return f"{distinct[0]:g}" if len(distinct) == 1 else f"[{', '.join(f'{bound:g}' for bound in bounds.ravel())}]"


def uniform_action(noise: np.ndarray, actions: int, mask: np.ndarray | None) -> np.ndarray:
    """The action that uniform noise in [0, 1) picks, each legal one equally often."""
    if mask is None:
        return (noise * actions).astype(np.int64)
    rank = (noise * mask.sum(-1)).astype(np.int64)
    return (mask.cumsum(-1) > rank[..., None]).argmax(-1)
