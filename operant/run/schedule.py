"""When a session logs, evaluates, saves and ends."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, Literal

Kind = Literal["log", "eval", "save"]


class Schedule:
    """What is due at which frame, from the `start` on to `until` or the whole budget (final).

    It depends on frames alone, so that a resumed run is due at the same ones; save for requests and `save_minutes`,
    and a checkpoint more or less changes nothing of what follows.
    """

    def __init__(self, meta: Mapping[str, Any], budget: int, until: int | None) -> None:
        self.budget = budget
        self.until = budget if until is None else min(until, budget)
        self.save_requested = False
        self._every: dict[Kind, int] = {
            "log": int(meta["log_frequency"]),
            "eval": int(meta["eval_frequency"]),
            "save": int(meta["save_frequency"]),
        }
        self._save_seconds = 60.0 * (meta.get("save_minutes") or math.inf)
        self._asked: dict[Kind, int] = dict.fromkeys(self._every, 0)
        self._saved_at: int | None = None
        self._saved_when = 0.0
        self._unsaved_at: int | None = None

    def start(self, frames: int, is_saved: bool) -> None:
        """Go on from so many frames, of which there is a checkpoint or not."""
        self._asked = dict.fromkeys(self._every, frames)
        self._saved_at, self._saved_when = frames if is_saved else None, time.perf_counter()

    def due(self, kind: Kind, frames: int, stop: bool) -> bool:
        """Whether a multiple of the kind's frequency was passed since the last call, or the budget is reached, once.

        A save is also due, once, at the end, when there is a `stop` or it was requested, and `save_minutes` after the
        last one.
        """
        last, every = self._asked[kind], self._every[kind]
        self._asked[kind] = frames
        if last < self.budget and (frames // every > last // every or frames >= self.budget):
            return True
        if kind != "save":
            return False
        late = time.perf_counter() - self._saved_when >= self._save_seconds
        is_due = frames != self._saved_at and (frames >= self.until or stop or self.save_requested or late)
        if not is_due:
            self._unsaved_at = frames
        return is_due

    def next_due(self, frames: int) -> int:
        """The frame after `frames` from which on there is more to do than to log: evaluate, save or end."""
        return min(self.until, *((frames // self._every[kind] + 1) * self._every[kind] for kind in ("eval", "save")))

    def done(self, frames: int, stop: bool) -> bool:
        """Whether to end. A stop that comes just after a save was not due waits, so that no update is lost to it."""
        return frames >= self.until or (stop and frames != self._unsaved_at)

    def saved(self, frames: int) -> None:
        """There is a checkpoint now."""
        self._saved_at, self._saved_when, self.save_requested = frames, time.perf_counter(), False

    def is_saved(self, frames: int) -> bool:
        """Whether an end now would lose no update."""
        return frames == (self._saved_at or 0)
