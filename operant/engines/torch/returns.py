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


def n_step_returns(
    reward: np.ndarray,
    next_value: np.ndarray,
    terminated: np.ndarray,
    truncated: np.ndarray,
    gamma: float,
    steps: int,
) -> np.ndarray:
    """r_t + ... + gamma^(n-1) r_(t+n-1) + gamma^n V(s_(t+n)) over arrays [T, N] (Sutton and Barto, 2018, eq. 7.1).

    The sum ends early, with a bootstrap, where a rollout or an episode does; `next_value` and
    termination are as in `gae`.
    """
    bootstrap = next_value * ~terminated
    over = terminated | truncated
    over[-1] = True
    result = reward + gamma * bootstrap
    for _ in range(min(steps, len(reward)) - 1):
        later = np.concatenate([result[1:], bootstrap[-1:]])
        result = reward + gamma * np.where(over, bootstrap, later)
    return result


def monte_carlo_returns(reward: np.ndarray, ended: np.ndarray, gamma: float) -> np.ndarray:
    """The discounted sum of rewards from each step to the end of its episode, over arrays [T, N]."""
    result = np.empty_like(reward)
    ahead = np.zeros_like(reward[0])
    for t in range(len(reward) - 1, -1, -1):
        ahead = reward[t] + gamma * ~ended[t] * ahead
        result[t] = ahead
    return result
