"""Running standardisation of observations and rewards; the statistics are part of the policy."""

from __future__ import annotations

import numpy as np


class RunningMoments:
    """Mean and variance of everything seen, by the parallel update of Chan et al. (1979)."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.mean = np.zeros(shape, np.float64)
        self.variance = np.ones(shape, np.float64)
        self.count = 0.0

    def update(self, batch: np.ndarray) -> None:
        """Add `batch` [n, ...]."""
        n = len(batch)
        mean, variance = batch.mean(0, dtype=np.float64), batch.var(0, dtype=np.float64)
        total = self.count + n
        shift = mean - self.mean
        spread = self.variance * self.count + variance * n + shift**2 * self.count * n / total
        self.mean = self.mean + shift * n / total
        self.variance = spread / total
        self.count = total

    def state(self) -> dict[str, np.ndarray]:
        """Arrays that `restore` takes."""
        return {"mean": self.mean, "variance": self.variance, "count": np.array(self.count)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take back what `state` gave."""
        self.mean, self.variance, self.count = state["mean"], state["variance"], float(state["count"])


class ObservationNormaliser:
    """Observations as (x - mean) / deviation, limited to +-clip; without statistics it does nothing."""

    def __init__(self, shape: tuple[int, ...], enabled: bool, clip: float) -> None:
        self.moments = RunningMoments(shape) if enabled else None
        self._clip = clip

    def learn(self, obs: np.ndarray) -> None:
        """Add observations to the statistics."""
        if self.moments is not None:
            self.moments.update(obs)

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        if self.moments is None:
            return obs
        scaled = (obs - self.moments.mean) / np.sqrt(self.moments.variance + 1e-8)
        return np.clip(scaled, -self._clip, self._clip).astype(np.float32)

    def state(self) -> dict[str, np.ndarray]:
        return self.moments.state() if self.moments is not None else {}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        if self.moments is not None:
            self.moments.restore(state)


class RewardNormaliser:
    """Rewards divided by the deviation of the running discounted return, then limited to +-clip."""

    def __init__(self, num: int, enabled: bool, gamma: float, clip: float | None) -> None:
        self.moments = RunningMoments(()) if enabled else None
        self._running = np.zeros(num, np.float64)
        self._gamma = gamma
        self._clip = clip

    def __call__(self, reward: np.ndarray, ended: np.ndarray) -> np.ndarray:
        if self.moments is not None:
            self._running = self._running * self._gamma + reward
            self.moments.update(self._running)
            self._running[ended] = 0.0
            reward = (reward / np.sqrt(self.moments.variance + 1e-8)).astype(np.float32)
        return reward if self._clip is None else np.clip(reward, -self._clip, self._clip)

    def state(self) -> dict[str, np.ndarray]:
        return {**self.moments.state(), "running": self._running} if self.moments is not None else {}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        if self.moments is not None:
            self._running = state["running"]
            self.moments.restore(state)
