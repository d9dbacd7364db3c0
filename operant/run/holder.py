"""Who holds a run's lock, and whether somebody still answers for that process.

A session that `train` or `resume` started belongs to that launcher. When the launcher is killed the session is an
orphan: it notices, saves and ends by itself, and until then it holds the run.
"""

from __future__ import annotations

import os
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Holder:
    """The process that wrote the note in a lock; `launcher` is None for a session that was started by hand."""

    pid: int
    host: str
    launcher: int | None

    @classmethod
    def of_note(cls, note: dict[str, Any]) -> Holder | None:
        """The process that a note names, if it names one."""
        pid, host, launcher = note.get("pid"), note.get("host"), note.get("launcher")
        if not isinstance(pid, int) or not isinstance(host, str):
            return None
        return cls(pid, host, launcher if isinstance(launcher, int) else None)

    @property
    def is_here(self) -> bool:
        """Whether it runs on this host."""
        return self.host == socket.gethostname()

    @property
    def is_orphan(self) -> bool:
        """Whether it lives here and the launcher that it belongs to is gone."""
        if self.launcher is None or not self.is_here:
            return False
        parent = _parent_of(self.pid)
        return parent is not None and parent != self.launcher

    def has_open(self, file: Path) -> bool:
        """Whether that process has `file` open: proof that the number still means the process that wrote the note."""
        try:
            return any(_is_same(entry, file) for entry in Path(f"/proc/{self.pid}/fd").iterdir())
        except OSError:
            return False


def _is_same(entry: Path, file: Path) -> bool:
    try:
        return os.path.samefile(entry, file)
    except OSError:
        return False


def _parent_of(pid: int) -> int | None:
    """The parent of a process now; None if there is no such process, or nobody says."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        pass
    if Path("/proc/self").exists():
        return None
    try:
        said = subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, timeout=5)
        return int(said.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
