"""Sessions as processes of their own, undisturbed or killed at a chosen moment.

`python -m operant.contract.processes RUN row:7` trains a session that sends itself SIGKILL once its metrics hold 7
rows; `checkpoint:2` does so in the midst of its second checkpoint. A moment counted in rows comes at the same place
every time, however quick the machine is.
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from operant.errors import RunError
from operant.launch.budget import library_environment
from operant.launch.parent_watch import PARENT_VARIABLE
from operant.run.checkpoint import Checkpoint
from operant.run.layout import METRICS_FILE
from operant.run.progress import Progress
from operant.run.run import Run
from operant.run.session import Session

LAST_LINES = 5


def finish(run: Run) -> None:
    """Train the session to the end of its budget in a new process; `RunError` with its last words if it fails."""
    ended = _run([sys.executable, "-m", "operant", "session", str(run.path)], run)
    if ended.returncode != 0:
        raise RunError(_last_words(ended))


def kill(run: Run, moment: str) -> bool:
    """Train the session until it is killed at `moment`; False if it ended before."""
    ended = _run([sys.executable, "-m", "operant.contract.processes", str(run.path), moment], run)
    if ended.returncode not in (0, -signal.SIGKILL):
        raise RunError(_last_words(ended))
    return ended.returncode == -signal.SIGKILL


def _run(argv: list[str], run: Run) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **library_environment(run.threads), PARENT_VARIABLE: str(os.getpid())}
    return subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def _last_words(ended: subprocess.CompletedProcess[str]) -> str:
    lines = ended.stderr.strip().splitlines()[-LAST_LINES:]
    return "; ".join(line.strip() for line in lines) or f"the session ended with exit code {ended.returncode}"


def _die_at(moment: str, path: Path) -> None:
    """Let this process kill itself at `moment` of the session that it is about to train."""
    kind, _, number = moment.partition(":")
    left = int(number)
    log, save = Session.log, Session.save

    def log_and_die(self: Session, at: Progress, values: Mapping[str, Any]) -> None:
        log(self, at, values)
        if (path / METRICS_FILE).read_bytes().count(b"\n") >= left:
            os.kill(os.getpid(), signal.SIGKILL)

    def save_and_die(
        self: Session, at: Progress, write: Callable[[Path], object], score: float | None = None
    ) -> Checkpoint:
        nonlocal left
        left -= 1

        def write_and_die(folder: Path) -> None:
            write(folder)
            os.kill(os.getpid(), signal.SIGKILL)

        return save(self, at, write_and_die if left == 0 else write, score)

    if kind == "row":
        Session.log = log_and_die
    else:
        Session.save = save_and_die


if __name__ == "__main__":
    _, place, when = sys.argv
    _die_at(when, Path(place))
    sys.argv = ["operant", "session", place]
    runpy.run_module("operant", run_name="__main__")
