"""A job must not run on for ever after the process that started it has died."""

from __future__ import annotations

import os
import signal
import threading
import time

from operant.errors import EXIT_STOPPED

PARENT_VARIABLE = "OPERANT_PARENT"
_LOOK_EVERY_SECONDS = 1.0


def stop_with_parent() -> None:
    """Watch the process that launched this one; when it is gone, stop as if asked politely.

    SIGTERM goes to this process, so a session still saves its checkpoint. Without the variable
    that the local launcher sets (a job started by hand or by a cluster) nothing is watched. The
    variable is taken out of the environment: this process's own children have another parent.
    """
    parent = os.environ.pop(PARENT_VARIABLE, "")
    if parent.isdigit():
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
