"""Ctrl-C, and the machine's request to end.

The first signal asks: the update in progress is finished and saved. The second insists: the process
ends at once, and the last checkpoint stays good because nothing of it is ever written in place.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

from operant.errors import EXIT_STOPPED

SIGNALS = (signal.SIGINT, signal.SIGTERM)
NOTICE = b"\nstopping after this update, then saving; once more to stop now (the last checkpoint stays good)\n"


class StopRequest:
    """Within this context the first SIGINT or SIGTERM only sets `requested`.

    Signals belong to the main thread; in any other thread this installs nothing.
    """

    def __init__(self) -> None:
        self.requested = False
        self._process = os.getpid()
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            # None stands for a handler that was not installed from Python and cannot be put back from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._previous.clear()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            self._receive_in_worker(number)
        elif self.requested:
            os._exit(EXIT_STOPPED)
        else:
            self.requested = True
            with suppress(OSError):
                os.write(2, NOTICE)

    def _receive_in_worker(self, number: int) -> None:
        """A forked worker serves its parent: Ctrl-C is the parent's to answer, SIGTERM comes from the parent."""
        if number == signal.SIGTERM:
            os._exit(128 + number)
