"""A schedule of my own: a value that changes with the frames of a run, such as epsilon or a clip range.

    operant check --contract my_schedule:MySchedule    does a run with it keep what Operant promises?
    operant train my_schedule.yaml                     trains DQN with it
    operant help schedule my_schedule:MySchedule       its settings

In a spec it stands wherever `operant help` says "number or schedule", by its module and class and beside its settings:
agent.algorithm.epsilon: {name: "my_schedule:MySchedule", start: 1.0, end: 0.05}.
"""

from __future__ import annotations

import math

from operant.spec.fields import free
from operant.spec.schedules import ScheduleSpec


class MySchedule(ScheduleSpec):
    """Half a cosine wave from `start` to `end`, which then stays."""

    # The keys that a spec may have beside `name`, with their limits. The bounds of the setting that it is used for
    # (0 to 1 for epsilon) are held against its values over the whole budget, before anything is trained.
    start: float = free(default=1.0, description="Value at frame 0.")
    end: float = free(default=0.05, description="Value from frame `frames` on.")
    frames: int = free(default=10_000, ge=1, le=10**12, description="How many frames the change takes.")

    def at(self, frame: int) -> float:
        """The value at `frame`, and nothing else may decide it: a resumed run goes on with the same values.

        For the jax engine, which calls this with a traced number, compute with operators and `jax.numpy` only.
        """
        done = min(frame / self.frames, 1.0)
        return self.end + (self.start - self.end) * (1 + math.cos(math.pi * done)) / 2
