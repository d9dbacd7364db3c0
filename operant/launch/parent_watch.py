"""A job must not run on for ever after the process that started it has died, nor keep its run from others."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence

from operant.errors import EXIT_STOPPED, RunError
from operant.run.holder import Holder
from operant.run.layout import LOCK_FILE, shown
from operant.run.lock import ORPHAN_SECONDS, holder_of, launched_by
from operant.run.run import Run

PARENT_VARIABLE = "OPERANT_PARENT"
_LOOK_EVERY_SECONDS = 1.0
_REPORT_EVERY_SECONDS = 5.0


def stop_with_parent() -> None:
    """Watch the process that launched this one; when it is gone, stop as if asked politely.

    SIGTERM goes to this process, so a session still saves its checkpoint. Without the variable
    that the local launcher sets (a job started by hand or by a cluster) nothing is watched. The
    variable is taken out of the environment: this process's own children have another parent.
    """
    parent = os.environ.pop(PARENT_VARIABLE, "")
    if parent.isdigit():
        launched_by(int(parent))
        threading.Thread(target=_watch, args=(int(parent),), name="parent-watch", daemon=True).start()


def _watch(parent: int) -> None:
    # A new parent id means the old one died. Polling works on every Unix, unlike Linux's PR_SET_PDEATHSIG.
    while os.getppid() == parent:
        time.sleep(_LOOK_EVERY_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def exit_when_signalled() -> None:
    """Until a session answers signals itself, a request to stop ends the process: there is nothing to save yet.

    Otherwise a Ctrl-C during the slow imports would end as an error from inside some library.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(EXIT_STOPPED))


def await_orphans(runs: Sequence[Run], report: Callable[[str], None]) -> None:
    """Wait until no session of `runs` is held by a process whose launcher was killed; end one that takes too long.

    Such a process has noticed, and saves. Of what it has not saved by then nothing is lost but time: the last
    checkpoint stays good. Sessions of a launcher that lives are left alone.
    """
    for run in runs:
        holder = holder_of(run.path / LOCK_FILE)
        if holder is not None and holder.is_orphan:
            report(
                f"  {run.path.name}: process {holder.pid} still saves, although the launcher that started it was"
                f" killed; waiting until it ends ({ORPHAN_SECONDS:.0f} s at most, then it is ended)"
            )
            _await_end(run, holder, report)


def _await_end(run: Run, holder: Holder, report: Callable[[str], None]) -> None:
    lock, begun, reported = run.path / LOCK_FILE, time.monotonic(), 0.0
    while holder_of(lock) == holder:
        waited = time.monotonic() - begun
        if waited > ORPHAN_SECONDS:
            _end(run, holder)
            report(f"  {run.path.name}: process {holder.pid} was ended; it continues from its last checkpoint")
            return
        if waited - reported > _REPORT_EVERY_SECONDS:
            reported = waited
            report(f"  {run.path.name}: still waiting for process {holder.pid}, {waited:.0f} s")
        time.sleep(0.1)


def _end(run: Run, holder: Holder) -> None:
    """Kill the process and what it started, if it is certainly the one that holds this run."""
    lock = run.path / LOCK_FILE
    stubborn = RunError(
        f"process {holder.pid} holds this session and does not end",
        place=shown(run.path),
        remedy=f"kill -9 {holder.pid}    (the last checkpoint stays good), then the same command again",
    )
    if not holder.has_open(lock):
        raise stubborn
    try:
        # A session that was launched leads a process group of its own.
        leads = os.getpgid(holder.pid) == holder.pid
        (os.killpg if leads else os.kill)(holder.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:
        raise stubborn from None
    deadline = time.monotonic() + 10
    while holder_of(lock) == holder:
        if time.monotonic() > deadline:
            raise stubborn
        time.sleep(0.05)
