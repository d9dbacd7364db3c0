"""Estimators of return and advantage, with termination and truncation kept apart."""

from __future__ import annotations

import numpy as np


def gae(
    reward: np.ndarray,
    value: np.ndarray,
    next_value: np.ndarray,
    terminated: np.ndarray,
    truncated: np.ndarray,
    gamma: float,
    lam: float,
) -> np.ndarray:
    """Generalised advantage estimation (Schulman et al., 2016) over arrays [T, N].

    `next_value[t]` is the value of the true successor of step t: of the final observation where
    the episode ended, never of the next episode's first. Termination removes the bootstrap;
    termination and truncation both cut the sum, so nothing leaks from one episode to another.
    """
    delta = reward + gamma * next_value * ~terminated - value
    carry = gamma * lam * ~(terminated | truncated)
    advantage = np.empty_like(delta)
    ahead = np.zeros_like(delta[0])
    for t in range(len(delta) - 1, -1, -1):
        ahead = delta[t] + carry[t] * ahead
        advantage[t] = ahead
    return advantage
