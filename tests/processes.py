"""What tests ask of the machine's processes: who runs, and whether they end in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def lives(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def marked(mark: str) -> list[int]:
    """The processes of the whole machine with this word in their command.

    Other tests run at the same time: a mark must be the caller's own.
    """
    return [int(folder.name) for folder in Path("/proc").glob("[0-9]*") if mark in command(int(folder.name))]


def command(pid: int) -> str:
    """The command line of a process, its parts divided by spaces; nothing for one that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def started_by(pid: int, mark: str) -> list[int]:
    """The children of a process with this word in their command."""
    children = [
        child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    return [int(child) for child in children if mark in command(int(child))]


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether a condition comes true in time: the kernel may take a moment to end what was killed."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
