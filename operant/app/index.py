"""The list of runs, kept up to date a little at a time: the newest first, then those that may have changed.

No metrics file is read but for its last lines, and a run is looked at again only when its files have changed.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from operant.app.entry import Entry, read_entry, signature
from operant.errors import UsageError
from operant.report.discovery import places
from operant.report.intervals import mean_intervals
from operant.run.layout import shown

BUDGET_SECONDS = 0.12
DISCOVERY_SECONDS = 1.0
LIVE = ("running", "new")


@dataclass
class _Known:
    """A run as it was seen last; `version` counts the changes of the whole list."""

    name: str
    path: Path
    signature: tuple[object, ...] = ()
    entry: Entry | None = None
    version: int = 0


@dataclass
class Index:
    """Every run below a folder (final). Threads take turns."""

    root: Path
    version: int = 0
    _runs: dict[str, _Known] = field(default_factory=dict)
    _gone: dict[str, int] = field(default_factory=dict)
    _rotation: deque[str] = field(default_factory=deque)
    _looked: float = 0.0
    _turn: threading.RLock = field(default_factory=threading.RLock)

    def path_of(self, name: str) -> Path:
        """Where a run is; `UsageError` for a name that is not in the list, whatever path it may spell."""
        with self._turn:
            if name not in self._runs:
                self._discover(at_once=True)
            known = self._runs.get(name)
        if known is None:
            raise UsageError(f"there is no run {name!r} under {shown(self.root)}", remedy="operant runs")
        return known.path

    def entry_of(self, name: str) -> Entry:
        """A run's row, up to date."""
        self.path_of(name)
        with self._turn:
            known = self._runs[name]
            self._look_at([known])
            assert known.entry is not None, "a run that was looked at has its entry"
            return known.entry

    def changes(self, since: int, seconds: float = BUDGET_SECONDS) -> dict[str, Any]:
        """The rows that changed after version `since`, having looked for changes for about so many seconds.

        `unread` counts runs that were not looked at yet: ask again at once.
        """
        with self._turn:
            self._refresh(seconds)
            rows = [known.entry.as_dict() for known in self._runs.values() if known.entry and known.version > since]
            unread = sum(known.entry is None for known in self._runs.values())
            gone = [name for name, version in self._gone.items() if version > since]
            return {"version": self.version, "total": len(self._runs), "unread": unread, "rows": rows, "gone": gone}

    def _refresh(self, seconds: float) -> None:
        self._discover()
        deadline = time.monotonic() + seconds
        unread = [known for known in self._runs.values() if known.entry is None]
        live = [known for known in self._runs.values() if known.entry and known.entry.state in LIVE]
        self._look_at(unread, deadline)
        self._look_at(live, deadline)
        for _ in range(len(self._rotation)):
            if time.monotonic() > deadline:
                break
            self._look_at([self._runs[self._rotation[0]]])
            self._rotation.rotate(-1)

    def _discover(self, at_once: bool = False) -> None:
        """Notice runs that came or went."""
        now = time.monotonic()
        if self._looked and now - self._looked < DISCOVERY_SECONDS and not at_once:
            return
        self._looked = now
        found = places(self.root)
        if found.keys() == self._runs.keys():
            return
        self.version += 1
        for name in self._runs.keys() - found.keys():
            self._gone[name] = self.version
        for name in found:
            self._gone.pop(name, None)
        self._runs = {name: self._runs.get(name) or _Known(name, path) for name, path in found.items()}
        self._rotation = deque(found)

    def _look_at(self, some: list[_Known], deadline: float | None = None) -> None:
        """Read again what changed; scores get their intervals together, for that is much quicker."""
        read: list[_Known] = []
        for known in some:
            now = signature(known.path)
            if known.entry is None or now != known.signature or known.entry.state == "running":
                entry = read_entry(known.path, known.name)
                if entry != known.entry:
                    known.entry = entry
                    read.append(known)
                known.signature = now
            if deadline is not None and time.monotonic() > deadline:
                break
        if not read:
            return
        self.version += 1
        scored = [known.entry for known in read if known.entry and known.entry.scores]
        for entry, estimate in zip(scored, mean_intervals([entry.scores for entry in scored]), strict=True):
            entry.score = estimate
        for known in read:
            known.version = self.version


def name_of_folder(root: Path) -> str:
    """The folder as a person would type it."""
    return os.path.basename(os.path.abspath(root)) if shown(root) == "." else shown(root)
