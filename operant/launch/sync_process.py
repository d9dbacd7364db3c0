"""The process that pushes a run while it trains: started beside the sessions, and never a part of them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from operant.run.layout import SYNC_LOG

RESTART_SECONDS = 30.0
LOOK_SECONDS = 0.1


class SyncProcess:
    """Pushes an experiment to a URL until it is told that training is over, also when this process is killed (final).

    It leads a process session of its own, so neither Ctrl-C nor the end of this process reaches it; its standard input
    closes with this process, by which it knows.
    """

    def __init__(self, experiment: Path, url: str, delete: bool) -> None:
        self.url = url
        self._experiment = experiment
        self._delete = ["--delete"] if delete else []
        self._started = 0.0
        self._process = self._start()

    def tend(self) -> None:
        """Start it again if something has killed it; called several times a second while sessions train."""
        if self._process.poll() is not None and time.monotonic() - self._started > RESTART_SECONDS:
            self._restart()

    def finish(self, leave: Callable[[], bool]) -> None:
        """Say that the sessions have ended and wait until everything is there, or until `leave` says not to wait."""
        if self._process.poll() not in (None, 0):
            self._restart()
        self._await_end(leave)
        if (self._process.poll() or 0) < 0:
            # It was killed; what it had not sent is sent by another one.
            self._restart()
            self._await_end(leave)
        if self._process.poll() is None:
            # It goes on by itself; nobody here waits for its end.
            self._process.returncode = 0

    def _await_end(self, leave: Callable[[], bool]) -> None:
        self._close()
        while self._process.poll() is None and not leave():
            time.sleep(LOOK_SECONDS)

    def _restart(self) -> None:
        self._close()
        self._process = self._start()

    def _close(self) -> None:
        assert self._process.stdin is not None, "it is started with a pipe"
        self._process.stdin.close()

    def _start(self) -> subprocess.Popen[bytes]:
        self._started = time.monotonic()
        words = [str(self._experiment), self.url, "--launched", *self._delete]
        with (self._experiment / SYNC_LOG).open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "operant", "sync", *words],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


def start_sync(experiment: Path, meta: Mapping[str, Any]) -> SyncProcess | None:
    """The process that `meta.sync` asks for, if it does."""
    url = meta.get("sync")
    return None if url is None else SyncProcess(experiment, url, bool(meta.get("sync_delete")))
