"""Estimators of return and advantage, with termination and truncation kept apart, and the scale of returns.

A critic may learn returns squeezed by symlog or standardized by running statistics, and advantages
may be measured by how far returns spread. Those statistics are part of the checkpoint.
"""

from __future__ import annotations

import numpy as np

from operant.engines.torch.normalize import RunningMoments


def gae(
    reward: np.ndarray,
    value: np.ndarray,
    next_value: np.ndarray,
    terminated: np.ndarray,
    truncated: np.ndarray,
    gamma: float,
    lam: float,
) -> np.ndarray:
    """Generalized advantage estimation (Schulman et al., 2016) over arrays [T, N].

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


LOW, HIGH = 5.0, 95.0  # percentiles between which returns are said to spread
DECAY = 0.99  # of the running spread, from one rollout to the next
SMALLEST = 1.0  # below it spreads are not stretched: that would only amplify noise where reward is rare


def symlog(x: np.ndarray) -> np.ndarray:
    """sign(x) log(1 + |x|): the identity near zero, a logarithm far from it (Hafner et al., 2023)."""
    return np.sign(x) * np.log1p(np.abs(x))


def symexp(x: np.ndarray) -> np.ndarray:
    """The inverse of `symlog`."""
    return np.sign(x) * np.expm1(np.abs(x))


class ReturnScale:
    """Between a critic's outputs and returns; without options both are the same.

    The critic learns `output_of` the returns that `update` has seen: squeezed first, then
    standardized. `spread` is the running percentile range of returns, at least 1.
    """

    def __init__(self, squeeze: bool = False, standardize: bool = False, spread: bool = False) -> None:
        self._squeeze = squeeze
        self._moments = RunningMoments(()) if standardize else None
        self._spread = RunningSpread() if spread else None

    def update(self, returns: np.ndarray) -> None:
        """Add the returns of one rollout to the statistics."""
        if self._spread is not None:
            self._spread.update(returns)
        if self._moments is not None:
            self._moments.update((symlog(returns) if self._squeeze else returns).ravel())

    def output_of(self, returns: np.ndarray) -> np.ndarray:
        """What the critic should give for these returns."""
        output = symlog(returns) if self._squeeze else returns
        if self._moments is None:
            return output
        return ((output - self._moments.mean) / self._deviation).astype(returns.dtype)

    def value_of(self, output: np.ndarray) -> np.ndarray:
        """The returns that these outputs of the critic stand for."""
        if self._moments is not None:
            output = (output * self._deviation + self._moments.mean).astype(output.dtype)
        return symexp(output) if self._squeeze else output

    @property
    def _deviation(self) -> np.ndarray:
        assert self._moments is not None, "only standardized outputs have a deviation"
        return np.sqrt(self._moments.variance + 1e-8)

    @property
    def spread(self) -> float:
        """What advantages are divided by: 1 unless the spread is wanted."""
        return 1.0 if self._spread is None else max(SMALLEST, self._spread.value)

    def state(self) -> dict[str, np.ndarray]:
        """Arrays that `restore` takes; none without statistics."""
        moments = {} if self._moments is None else self._moments.state()
        return moments if self._spread is None else {**moments, **self._spread.state()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take back what `state` gave."""
        if self._moments is not None:
            self._moments.restore(state)
        if self._spread is not None:
            self._spread.restore(state)


class RunningSpread:
    """The range between two percentiles of returns, averaged over rollouts with exponential decay.

    The average starts from nothing, so it is divided by the weight that it has gathered so far.
    """

    def __init__(self) -> None:
        self._sum = 0.0
        self._weight = 0.0

    @property
    def value(self) -> float:
        """The average; 0 before the first update."""
        return self._sum / self._weight if self._weight else 0.0

    def update(self, returns: np.ndarray) -> None:
        """Add one rollout of returns."""
        low, high = np.percentile(returns, (LOW, HIGH))
        self._sum = DECAY * self._sum + (1 - DECAY) * float(high - low)
        self._weight = DECAY * self._weight + (1 - DECAY)

    def state(self) -> dict[str, np.ndarray]:
        """Arrays that `restore` takes."""
        return {"spread": np.array([self._sum, self._weight])}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take back what `state` gave."""
        self._sum, self._weight = state["spread"].tolist()
