"""The prompt journal (prompts.jsonl): what became of every prompt of a language run, in every attempt.

A prompt is named by its place in the order of the sampler. Each attempt begins with a row `start`, which says from
where it goes on: the length of the journal at its checkpoint, the next place to draw, and the places `owed`, drawn by
then and without an outcome. The file is never cut: rows after that length that come before the start belong to updates
that were lost, so their outcomes count no more.

    drawn -> generating -> (turn ...) -> generated -> graded -> trained | dropped
    restored: a finished rollout, kept from an earlier attempt; continued: one of many turns goes on from its last
    stale, redone: generated once more; left: drawn when the attempt ended
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from operant.run.layout import PROMPTS_FILE
from operant.run.metrics import JsonLines

START = "start"
PromptEvent = Literal["generating", "turn", "generated", "graded", "restored", "continued", "stale", "redone"]
PromptOutcome = Literal["trained", "dropped"]
OUTCOMES: tuple[PromptOutcome, ...] = ("trained", "dropped")
FIELDS: dict[str, dict[str, type]] = {
    START: {"offset": int, "next": int, "owed": list, "frames": int},
    **{event: {"prompt": int} for event in ("drawn", "left", *get_args(PromptEvent))},
    "turn": {"prompt": int, "rollout": int, "turn": int},
    "trained": {"prompt": int, "problem": str, "completions": int},
    "dropped": {"prompt": int, "problem": str, "completions": int, "reason": str},
}
"""What the row of each event must say; rows may say more."""


class PromptJournal:
    """The writer of a session's prompt journal (final). A row is in the file when `add` returns. Any thread may add."""

    def __init__(self, session: Path, attempt: int) -> None:
        self.path = session / PROMPTS_FILE
        self.attempt = attempt
        self._lock = threading.Lock()
        self._log = JsonLines(self.path)

    @property
    def offset(self) -> int:
        """Where the file ends."""
        with self._lock:
            return self._log.offset

    def start(self, offset: int, position: int, owed: Sequence[int], frames: int) -> None:
        """An attempt begins from a checkpoint of `frames` completions, at which the journal was `offset` bytes long."""
        self._add(
            {"event": START, "attempt": self.attempt, "offset": offset, "next": position, "owed": list(owed)}
            | {"frames": frames}
        )

    def add(self, event: str, prompt: int, **facts: object) -> None:
        """Something happened to a prompt."""
        self._add({"event": event, "prompt": prompt, **facts})

    def sync(self) -> None:
        """Force the file to the disk."""
        with self._lock:
            self._log.sync()

    def close(self) -> None:
        """Let go of the file; what is added later is dropped."""
        with self._lock:
            self._log.close()

    def _add(self, row: dict[str, Any]) -> None:
        with self._lock:
            if not self._log.closed:
                self._log.append(row)
                self._log.flush()
