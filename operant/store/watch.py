"""Pushing a run while it trains, from outside its processes: whatever happens here, training goes on.

All that is known comes from the run directory and the store, so a watcher that is killed can be started again.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from operant.errors import OperantError
from operant.run.layout import (
    CHECKPOINTS_FOLDER,
    EPISODES_FILE,
    METRICS_FILE,
    RUN_FILE,
    checkpoint_paths,
    timestamp,
)
from operant.run.redaction import redact
from operant.run.run import Run
from operant.store.backend import Report, StoreError
from operant.store.location import open_store
from operant.store.snapshot import unit_paths
from operant.store.status import write_status
from operant.store.upload import HEARTBEAT_SECONDS, Pages, Sent, Uploader

POLL_SECONDS = 1.0
ROWS_SECONDS = 30.0
# The hub allows a few commits a minute.
COMMIT_SECONDS = 300.0
LONGEST_PAUSE_SECONDS = 60.0
GIVE_UP_SECONDS = 600.0
SYNC_LOCK = ".sync.lock"
Note = Callable[[str, str | None], None]


def follow(
    pushing: Uploader,
    over: Callable[[], bool],
    report: Report,
    *,
    patient: bool = False,
    note: Note = lambda state, error: None,
) -> Sent:
    """Push until training is over and everything is there; the sum of what was sent.

    A fault is retried: while training goes on without end, if `patient` or once a push has worked, and afterwards for
    `GIVE_UP_SECONDS` if it may pass by itself. `note` hears the state after every push.
    """
    total, failures, ended_at = Sent(pushing.place), 0, None
    while True:
        ended = over()
        if ended and ended_at is None:
            ended_at = time.monotonic()
        seen = _look(pushing.experiment)
        try:
            sent = pushing.push()
        except OperantError as problem:
            failures += 1
            note("failing", str(problem).splitlines()[0])
            passes = isinstance(problem, StoreError) and problem.is_transient
            too_late = ended_at is not None and (not passes or time.monotonic() - ended_at > GIVE_UP_SECONDS)
            if too_late or not (patient or passes or total.files) or not pushing.experiment.is_dir():
                raise
            pause = min(LONGEST_PAUSE_SECONDS, 2.0**failures)
            report(f"{problem.cause}; next try in {pause:.0f} s")
            time.sleep(pause)
            continue
        failures, patient = 0, True
        _add(total, sent)
        if sent.files:
            report(f"{sent.files} files, {sent.bytes:,} bytes sent to {sent.place}")
        note("done" if ended else "watching", None)
        if ended:
            return total
        _wait(pushing, seen, over)


def nobody_trains(experiment: Path) -> bool:
    """Whether no session of an experiment is running."""
    return all(Run.open(experiment / unit).state != "running" for unit in unit_paths(experiment))


def serve(experiment: Path, url: str, *, delete: bool, pages: Pages) -> bool:
    """The life of the process that a launcher starts; whether everything is there at its end.

    The launcher closes this process's standard input when its sessions have ended, and so does its own end.
    """
    os.nice(5)
    closed = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.buffer.read(), closed.set()), daemon=True).start()

    def report(line: str) -> None:
        print(f"{timestamp()} {redact(line)}", flush=True)

    def note(state: str, error: str | None) -> None:
        write_status(experiment, url, state, error)
        if state == "done":
            report(f"everything is at {pushing.place}")

    with open(experiment / SYNC_LOCK, "w") as lock:
        # One that an earlier launcher started may still be pushing; then it goes on watching, and we come after it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            pushing = Uploader(open_store(url, report), experiment, delete=delete, report=report, pages=pages)
            follow(
                pushing,
                over=lambda: closed.is_set() and nobody_trains(experiment),
                report=report,
                patient=True,
                note=note,
            )
        except Exception as problem:
            report(str(problem))
            if experiment.is_dir():
                write_status(experiment, url, "failed", (str(problem) or repr(problem)).splitlines()[0])
            if not isinstance(problem, OperantError):
                raise
            return False
    return True


def _wait(pushing: Uploader, seen: tuple[Any, Any], over: Callable[[], bool]) -> None:
    """Until there is a new checkpoint or state, new rows for some time, or a reader would think the run lost."""
    begun = time.monotonic()
    while not over():
        time.sleep(POLL_SECONDS)
        waited = time.monotonic() - begun
        saved, rows = _look(pushing.experiment)
        if saved != seen[0] and (not pushing.is_plain or waited > COMMIT_SECONDS):
            return
        if rows != seen[1] and waited > (COMMIT_SECONDS if pushing.is_plain else ROWS_SECONDS):
            return
        if waited > HEARTBEAT_SECONDS and not pushing.is_plain:
            return


def _look(experiment: Path) -> tuple[Any, Any]:
    """Two marks: one changes with checkpoints and states, the other with rows."""
    saved, rows = [], []
    for unit in unit_paths(experiment):
        session = experiment / unit
        saved.append(_modified(session / RUN_FILE))
        saved += [(path.name, _modified(path)) for path in checkpoint_paths(session / CHECKPOINTS_FOLDER)]
        rows += [_modified(session / name) for name in (METRICS_FILE, EPISODES_FILE)]
    return saved, rows


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _add(total: Sent, sent: Sent) -> None:
    total.files += sent.files
    total.bytes += sent.bytes
    total.deleted += sent.deleted
    total.kept = sent.kept
    total.damaged = sent.damaged
