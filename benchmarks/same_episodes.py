"""The episodes that every library is judged on: they begin from seeds of their own, the same for all.

Where an episode begins can matter more to its return than who plays it.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

FIRST_SEED = 1_000_000
KINDS = {"greedy": True, "sampled": False}  # of play: whether it takes the best action only


def peer_return(world: Any, act: Callable[[Any], Any], episodes: int) -> float:
    """Mean return of `act`, which is given one observation at a time, over that many of the episodes."""
    returns = []
    for k in range(episodes):
        seen, over, total = world.reset(seed=FIRST_SEED + k)[0], False, 0.0
        while not over:
            seen, reward, terminated, truncated, _ = world.step(act(seen))
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    return fmean(returns)
