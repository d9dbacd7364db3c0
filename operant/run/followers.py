"""Processes that help a session: they end when it ends, and when one ends before, it is said of what.

A follower's standard input closes when the session is gone, however it went; its last words come by its
standard output.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple

MOMENT_SECONDS = 5.0


class Death(NamedTuple):
    """Which follower is gone, counted from 1, and what it died of."""

    rank: int
    cause: str


class Followers:
    """Interpreters that run `code`, one with each list of arguments; the end of the context kills them (final)."""

    def __init__(self, code: str, arguments: Sequence[Sequence[str]]) -> None:
        self._processes = [_start(code, each) for each in arguments]

    def __enter__(self) -> Followers:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()

    def death(self) -> Death | None:
        """What the first follower that is gone died of; None if all live on for a moment."""
        deadline = time.monotonic() + MOMENT_SECONDS
        while time.monotonic() < deadline:
            for rank, process in enumerate(self._processes, start=1):
                if (code := process.poll()) is not None:
                    return Death(rank, _last_words(process, code))
            time.sleep(0.05)
        return None


def search_path() -> str:
    """Where this process looks for modules, for one that is to find the same."""
    return os.pathsep.join(os.path.abspath(place) for place in sys.path)


def follow(work: Callable[[], object], dismissed: type[Exception]) -> None:
    """The life of a follower: do the work until dismissed; whatever else ends it is reported to the session."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_leader, daemon=True).start()
    last_words = os.dup(1)
    os.dup2(2, 1)  # what a library prints belongs in the log
    try:
        work()
    except dismissed:
        os._exit(0)
    except Exception as problem:
        traceback.print_exc()
        os.write(last_words, f"{type(problem).__name__}: {problem}".encode())
        os._exit(1)


def _start(code: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": search_path()},
    )


def _last_words(process: subprocess.Popen[bytes], code: int) -> str:
    assert process.stdout is not None, "followers are started with a pipe"
    output = process.stdout.read().decode(errors="replace")
    return output or (signal.Signals(-code).name if code < 0 else f"exit code {code}")


def _end_with_leader() -> None:
    sys.stdin.buffer.read()
    os._exit(1)
