"""What a session does while no rows come (loading, compiling, warming up, evaluating), for people who wait.

A small file in the run directory names it with the moment it began, so that every process can show it with its
seconds. It is no part of the record: a phase that cannot be written is no reason to stop training.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from operant.run.layout import LEFTOVER_PREFIX, PHASE_FILE


@dataclass(frozen=True)
class Phase:
    """Something that takes its time. `interruptible` says that nothing was trained since the last checkpoint."""

    name: str
    interruptible: bool
    since: float = field(default_factory=time.time)
    done: int | None = None
    total: int | None = None

    def text(self, now: float | None = None) -> str:
        """compiling 12 s; SFT warm-up 40/200, 12 s"""
        seconds = max(0.0, (time.time() if now is None else now) - self.since)
        part = "" if self.done is None else f" {self.done:,}/{self.total:,}," if self.total else f" {self.done:,},"
        return f"{self.name}{part} {seconds:.0f} s"


def write_phase(session: Path, phase: Phase | None) -> None:
    """Make `phase` the one that others read; None takes the file away."""
    file = session / PHASE_FILE
    with suppress(OSError):
        if phase is None:
            file.unlink(missing_ok=True)
            return
        temporary = file.with_name(LEFTOVER_PREFIX + PHASE_FILE)
        temporary.write_text(json.dumps(asdict(phase)), encoding="utf-8")
        os.replace(temporary, file)


def read_phase(session: Path) -> Phase | None:
    """The phase that the session last wrote; it may have died in it. None where there is none that can be read."""
    try:
        return Phase(**json.loads((session / PHASE_FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
