"""How many updates a compiled program makes before the host logs, evaluates or saves.

Metric rows, evaluations and checkpoints come after every `row_updates` updates, which the spec alone decides. A chunk
is one call of the program and holds one or several rows: where rows are short, a call for each would cost more than
its updates. How many rows a chunk has depends on the clock, and no result depends on that.
"""

from __future__ import annotations

from typing import NamedTuple

from operant.engines.jax.episodes import FinishedEpisode
from operant.engines.jax.learner import Learner, UpdateMetrics

MOST_ROWS = 16
MOST_UPDATES = 64  # of a chunk that has several rows
SHORT, LONG = 0.1, 0.4  # seconds: after a chunk that took less the next one is longer, after one that took more shorter


class ChunkRow(NamedTuple):
    """What the updates of one row returned, on the host: sums, and the episodes that are recorded."""

    updates: int
    metrics: UpdateMetrics
    episodes: list[FinishedEpisode]


def row_updates(learner: Learner) -> int:
    """Updates from one row to the next: until the most frequent task of the host. A function of the spec alone."""
    meta = learner.spec.meta
    return max(1, min(meta.log_frequency, meta.eval_frequency, meta.save_frequency) // learner.frames)


def most_rows(of_row: int) -> int:
    """The most rows of a chunk, of so many updates each."""
    return max(1, min(MOST_ROWS, MOST_UPDATES // of_row))


def row_sizes(of_row: int, updates: int) -> list[int]:
    """The updates of each row of a chunk of so many."""
    whole, rest = divmod(updates, of_row)
    return [of_row] * whole + [rest] * (rest > 0)


def updates_left(learner: Learner, of_row: int, rows: int, frames: int, target: int) -> int:
    """Updates of the next chunk at `frames`: at most so many rows, of which only the last reaches `target`.

    Rows are whole from frame 0 on, and cut short by the budget; what is left of one that was cut is a chunk of its own.
    """
    done, whole = frames // learner.frames, -(-learner.spec.env.max_frame // learner.frames)
    begun = done % of_row
    needed = max(-(-target // learner.frames) - done, 1)
    count = 1 if begun else min(rows, -(-needed // of_row))
    return min(count * of_row - begun, whole - done)


class ChunkLength:
    """How many rows the next chunk has, by the seconds that the last one took."""

    def __init__(self, most: int) -> None:
        self.rows, self._most = 1, most

    def took(self, seconds: float) -> None:
        """The last chunk took so long."""
        if seconds < SHORT:
            self.rows = min(self._most, 2 * self.rows)
        elif seconds > LONG:
            self.rows = max(1, self.rows // 2)
