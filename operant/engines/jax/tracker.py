"""What the host counts of one lane between metric rows; all of it is in the checkpoint, so rows continue exactly."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from operant.engines.jax.learner import UpdateMetrics

WINDOW = 100


class Tracker:
    """Counters, recent episodes, and running means of the metrics of updates."""

    def __init__(self) -> None:
        self.frames = 0
        self.updates = 0
        self.episodes = 0
        self._recent: deque[tuple[int, float, float]] = deque()
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self._maxima: dict[str, float] = {}

    def add(self, metrics: UpdateMetrics, frames: int, updates: int) -> None:
        """Count one chunk of `updates` updates; the arrays are on the host."""
        self.frames += frames
        self.updates += int(metrics.gradient_steps)
        self.episodes += int(metrics.episodes)
        self._remember(int(metrics.episodes), float(metrics.score), float(metrics.length))
        if metrics.learned:
            self._add(metrics.means, int(metrics.learned))
        self._add(metrics.env_means, updates)
        for name, most in metrics.env_maxima.items():
            self._maxima[name] = max(self._maxima.get(name, float(most)), float(most))

    def _add(self, totals: Mapping[str, Any], count: int) -> None:
        for name, total in totals.items():
            self._sums[name] = self._sums.get(name, 0.0) + float(total)
            self._counts[name] = self._counts.get(name, 0) + count

    def _remember(self, count: int, score: float, length: float) -> None:
        """Keep the sums of the latest chunks that together hold at least 100 episodes, or all there are."""
        if count:
            self._recent.append((count, score, length))
        while sum(chunk[0] for chunk in self._recent) - self._recent[0][0] >= WINDOW if self._recent else False:
            self._recent.popleft()

    def flush(self) -> dict[str, float | None]:
        """The next row: episode means of the latest chunks, and other means and maxima since the last row."""
        row: dict[str, float | None] = {"train/return": None, "train/length": None}
        if self._recent:
            count, score, length = (sum(column) for column in zip(*self._recent, strict=True))
            row = {"train/return": score / count, "train/length": length / count}
        row |= {name: total / self._counts[name] for name, total in self._sums.items()}
        row |= self._maxima
        self._sums, self._counts, self._maxima = {}, {}, {}
        return row

    def state(self) -> dict[str, Any]:
        """JSON that `restore` takes."""
        return {
            "frames": self.frames,
            "updates": self.updates,
            "episodes": self.episodes,
            "recent": list(self._recent),
            "sums": self._sums,
            "counts": self._counts,
            "maxima": self._maxima,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` gave."""
        self.frames, self.updates, self.episodes = state["frames"], state["updates"], state["episodes"]
        self._recent = deque((count, score, length) for count, score, length in state["recent"])
        self._sums, self._counts, self._maxima = dict(state["sums"]), dict(state["counts"]), dict(state["maxima"])
