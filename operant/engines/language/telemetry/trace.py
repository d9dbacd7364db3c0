"""What every part of a run did and when, in Chrome's trace format: open it at ui.perfetto.dev or chrome://tracing.

The file is an array of events, one a line, whose closing bracket is left out, as the format allows; so it can be
read while the run goes on and after a kill. Each attempt is a process in it, each component a thread, and each
prompt a row of its own from being taken to its fate. Nothing reads the file back, so results cannot depend on it.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from operant.run.disk import disk_guard
from operant.run.layout import TRACE_FILE

LIMIT = 32 * 2**20
"""Bytes after which a trace becomes the earlier one, in place of the one before; so two such files are all there is."""
PROMPTS = "prompts"


class Trace:
    """Events of one attempt, written at every `flush`; without a folder nothing is kept. Any thread may use it."""

    def __init__(self, folder: Path | None = None, attempt: int = 1, limit: int = LIMIT) -> None:
        self.path = None if folder is None else folder / TRACE_FILE
        self.attempt = attempt
        self.limit = limit
        self._lock = threading.Lock()
        self._lines: list[str] = []
        self._lanes: dict[str, int] = {}
        # Wall time, so that attempts follow each other; its steps are those of a clock that never goes back.
        self._start = time.time_ns() - time.perf_counter_ns()
        if self.path is not None:
            _mend(self.path)

    @contextmanager
    def span(self, name: str, lane: str, **facts: Any) -> Iterator[None]:
        """A bar from the beginning to the end of the block, in the row of a component."""
        if self.path is None:
            yield
            return
        begun = self._now()
        try:
            yield
        finally:
            self._add("X", name, lane, begun, dur=round(self._now() - begun, 3), args=facts)

    def mark(self, name: str, lane: str, **facts: Any) -> None:
        """A moment in the row of a component."""
        if self.path is not None:
            self._add("i", name, lane, self._now(), s="t", args=facts)

    def prompt(self, phase: str, place: int, step: str, **facts: Any) -> None:
        """A moment in a prompt's own row: `phase` is "b" for its begin, "n" for what happens to it, "e" for its end."""
        if self.path is not None:
            name = "prompt" if phase in "be" else step
            self._add(phase, name, PROMPTS, self._now(), cat="prompt", id=place, args={"step": step, **facts})

    def flush(self) -> None:
        """Hand every event to the operating system."""
        with self._lock:
            lines, self._lines = self._lines, []
            if self.path is None or not lines:
                return
            with disk_guard(self.path, self.path.parent):
                self._write("".join(lines))

    def _write(self, text: str) -> None:
        assert self.path is not None
        if not self.path.exists():
            text = f"[\n{text}"
        elif self.path.stat().st_size > self.limit:
            self.path.replace(self.path.with_name(f"earlier_{self.path.name}"))
            text = "[\n" + "".join(self._names()) + text
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text)

    def _now(self) -> float:
        """Microseconds."""
        return (self._start + time.perf_counter_ns()) / 1000

    def _add(self, phase: str, name: str, lane: str, at: float, **rest: Any) -> None:
        with self._lock:
            number = self._lanes.get(lane)
            if number is None:
                number = self._lanes[lane] = len(self._lanes) + 1
                self._lines += self._names(lane)
            row = {"ph": phase, "name": name, "pid": self.attempt, "tid": number, "ts": round(at, 3), **rest}
            self._lines.append(_line(row))

    def _names(self, only: str | None = None) -> list[str]:
        """The events that name the rows: of one component, or of the attempt and all of them."""
        head = {"ph": "M", "pid": self.attempt}
        lanes = self._lanes if only is None else {only: self._lanes[only]}
        rows: list[dict[str, Any]] = [
            {**head, "name": "thread_name", "tid": number, "args": {"name": lane}} for lane, number in lanes.items()
        ]
        if only is None or len(self._lanes) == 1:
            rows.insert(0, {**head, "name": "process_name", "args": {"name": f"attempt {self.attempt}"}})
        return [_line(row) for row in rows]


_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode


def _line(row: dict[str, Any]) -> str:
    return _encode(row) + ",\n"


def _mend(path: Path) -> None:
    """Cut off an event that a kill cut in two."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        start = max(0, end - 2**16)
        file.seek(start)
        whole = file.read().rfind(b"\n") + 1
        file.truncate(start + whole)
