"""Schedules of my own: a cosine, and steps that any engine can take.

In a spec:

    agent: {algorithm: {name: dqn, epsilon: {name: "my_schedules:Cosine", start: 1.0, end: 0.05, frames: 50_000}}}

What a setting takes as a number or as a straight line (`operant help schedule`), it takes as one of these too.
"""

from __future__ import annotations

import math
from typing import Any

from operant.spec.fields import free
from operant.spec.schedules import ScheduleSpec


class Cosine(ScheduleSpec):
    """Half a cosine wave from `start` to `end`, which then stays."""

    # The keys that a spec may have beside `name`, with their limits. The bounds of the setting itself, such as 0 to 1
    # for epsilon, are held against the values over the whole budget, before anything is trained.
    start: float = free(description="Value at frame 0.")
    end: float = free(description="Value from frame `frames` on.")
    frames: int = free(ge=1, le=10**12, description="How many frames the change takes.")

    def at(self, frame: int) -> float:
        """The value at `frame`. It depends on nothing else, so that a resumed run goes on with the same values."""
        done = min(frame / self.frames, 1.0)
        return self.end + (self.start - self.end) * (1 + math.cos(math.pi * done)) / 2


class Steps(ScheduleSpec):
    """`start`, multiplied by `factor` after every `every` frames."""

    start: float = free(gt=0, description="Value of the first frames.")
    factor: float = free(default=0.5, gt=0, le=1, description="What it is multiplied by.")
    every: int = free(ge=1, le=10**12, description="Frames between two changes.")

    def at(self, frame: Any) -> Any:
        """With operators only, so that the jax engine can compile it, with a traced number in the place of `frame`."""
        return self.start * self.factor ** (frame // self.every)
