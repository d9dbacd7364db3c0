"""What a learner counts between metric rows; all of it is in the checkpoint, so rows continue exactly."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

WINDOW = 100


class Tracker:
    """Recent episodes, and running means of whatever the learner reports."""

    def __init__(self) -> None:
        self.frames = 0
        self.updates = 0
        self.episodes = 0
        self._recent: deque[tuple[float, int]] = deque(maxlen=WINDOW)
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def ended(self, score: float, length: int) -> None:
        """Count one finished episode."""
        self.episodes += 1
        self._recent.append((score, length))

    def add(self, values: dict[str, float]) -> None:
        """Count values whose mean belongs in the next row."""
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
            self._counts[name] = self._counts.get(name, 0) + 1

    def add_means(self, names: Sequence[str], steps: Sequence[Tensor]) -> None:
        """Count the means over gradient steps, each of which reports its values in the order of `names`."""
        if steps:
            self.add(dict(zip(names, torch.stack(list(steps)).mean(0).tolist(), strict=True)))

    def flush(self) -> dict[str, float | None]:
        """The next row: episode means over the last 100 (null before the first), other means since the last row."""
        row: dict[str, float | None] = {"train/return": None, "train/length": None}
        if self._recent:
            scores, lengths = zip(*self._recent, strict=True)
            row = {"train/return": float(np.mean(scores)), "train/length": float(np.mean(lengths))}
        row |= {name: total / self._counts[name] for name, total in self._sums.items()}
        self._sums.clear()
        self._counts.clear()
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
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` gave."""
        self.frames, self.updates, self.episodes = state["frames"], state["updates"], state["episodes"]
        self._recent = deque(((score, length) for score, length in state["recent"]), maxlen=WINDOW)
        self._sums, self._counts = dict(state["sums"]), dict(state["counts"])
