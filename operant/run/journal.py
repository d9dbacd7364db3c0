"""What happened to a run, written twice: as rows for programs (events.jsonl) and as lines for people.

Unlike metrics, events are never cut back: they are the history of the attempts themselves.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from operant.run.layout import EVENTS_FILE, log_path, timestamp
from operant.run.metrics import JsonLines
from operant.run.progress import Progress
from operant.run.redaction import redact


class Journal:
    """The events and the text log of one attempt, which any thread may add to. Secrets never reach either."""

    def __init__(self, session: Path, attempt: int) -> None:
        self._attempt = attempt
        self._turn = threading.Lock()
        self._events = JsonLines(session / EVENTS_FILE)
        path = log_path(session, attempt)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def event(self, kind: str, message: str, at: Progress | None = None) -> None:
        """Record something the user should know, and how far the run had come, and print it."""
        message = redact(message)
        row = {"time": timestamp(), "attempt": self._attempt, "kind": kind, "message": message}
        with self._turn:
            self._events.append({**row, **({} if at is None else at.as_dict())})
            self._events.flush()
        self.write(f"{timestamp()} {kind}: {message}\n")
        if not self._is_standard_error():
            print(f"{kind}: {message}", file=sys.stderr, flush=True)

    def write(self, text: str) -> None:
        """Add text to the log only."""
        os.write(self._log, redact(text).encode("utf-8", "replace"))

    def close(self) -> None:
        """Let go of both files."""
        self._events.close()
        os.close(self._log)

    def _is_standard_error(self) -> bool:
        """Whether a launcher already sends this process's errors to the very same log."""
        try:
            return os.path.sameopenfile(2, self._log)
        except OSError:
            return False
