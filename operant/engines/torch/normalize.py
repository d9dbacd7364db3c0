"""Running standardization of observations and rewards; the statistics are part of the policy."""

from __future__ import annotations

import numpy as np

from operant.errors import RunError

EPSILON = 1e-8  # of variances: what hardly varies is not blown up
LIMIT = 10.0  # of normalized rewards where a spec names none: what Stable-Baselines3 and CleanRL use


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


class ObservationNormalizer:
    """Observations as (x - mean) / deviation, limited to +-clip; without statistics it does nothing."""

    def __init__(self, shape: tuple[int, ...], enabled: bool, clip: float) -> None:
        self.moments = RunningMoments(shape) if enabled else None
        self.clip = clip

    def update(self, obs: np.ndarray) -> None:
        """Add observations to the statistics."""
        if self.moments is not None:
            self.moments.update(obs)

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        if self.moments is None:
            return obs
        scaled = (obs - self.moments.mean) / np.sqrt(self.moments.variance + EPSILON)
        return np.clip(scaled, -self.clip, self.clip).astype(np.float32)

    def state(self) -> dict[str, np.ndarray]:
        return self.moments.state() if self.moments is not None else {}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        if self.moments is not None:
            self.moments.restore(state)


class RewardNormalizer:
    """Rewards divided by the deviation of the running discounted return, then limited to +-clip.

    The return of every environment is 0 before its first reward, and the statistics begin with those
    zeros: so the first rewards come out of order 1 whatever their scale, however many environments
    there are and however alike their rewards, and what the zeros weigh fades with every step.
    Without a `clip` normalized rewards are limited to `LIMIT`, since a reward may always be much
    larger than all before it.

    `update` and `scaled` are apart because all rewards of a rollout, or of a batch, are to be divided
    by one deviation. What is kept to be learnt from later (`replayed`) is kept unscaled for that.
    """

    def __init__(self, num: int, enabled: bool, gamma: float, clip: float | None, *, replayed: bool = False) -> None:
        self.moments = RunningMoments(()) if enabled else None
        if self.moments is not None:
            self.moments.variance, self.moments.count = np.zeros(()), float(num)
        self._running = np.zeros(num, np.float64)
        self._gamma = gamma
        self._limit = LIMIT if enabled and clip is None else clip
        self.replayed = replayed

    def update(self, reward: np.ndarray, ended: np.ndarray, playing: np.ndarray | None = None) -> None:
        """Add a step of every environment, or of those `playing`; `ended` says whose episode is over."""
        if self.moments is not None:
            self._running = self._running * self._gamma + reward
            self.moments.update(self._running if playing is None else self._running[playing])
            self._running[ended] = 0.0

    @property
    def deviation(self) -> float:
        """What rewards are divided by: 1 where nothing is, and while every reward was 0."""
        return 1.0 if self.moments is None else float(np.sqrt(self.moments.variance)) or 1.0

    def kept(self, reward: np.ndarray) -> np.ndarray:
        """Rewards as a replay keeps them: as they are where `scaled` is to divide them, else limited already."""
        return self._limited(reward, 1) if self.moments is None else reward

    def scaled(self, reward: np.ndarray, steps: int = 1) -> np.ndarray:
        """Rewards as they are learnt from, by the statistics of now; each may be a discounted sum of `steps`."""
        if self.moments is not None:
            reward = (reward / self.deviation).astype(np.float32)
        return self._limited(reward, steps)

    def _limited(self, reward: np.ndarray, steps: int) -> np.ndarray:
        return reward if self._limit is None else np.clip(reward, -self._limit * steps, self._limit * steps)

    def state(self) -> dict[str, np.ndarray]:
        if self.moments is None:
            return {}
        return {**self.moments.state(), "running": self._running, "unscaled": np.array(self.replayed)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        if self.moments is None:
            return
        if self.replayed and "unscaled" not in state:
            raise RunError(
                "the checkpoint was written when a replay kept rewards normalized by the statistics of their time; "
                "they are kept unscaled now and normalized when they are sampled",
                remedy="start a new run, or finish this one with the version that began it (meta/ of the run names it)",
            )
        self._running = state["running"]
        self.moments.restore(state)
