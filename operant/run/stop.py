"""Ctrl-C, and the machine's request to end.

The first signal asks: the update in progress is finished and saved, and where there is nothing to save (while a
model is loaded or a program compiled) the work ends at once. The second insists: the process ends at once, and the
last checkpoint stays good because nothing of it is ever written in place.

Python runs its signal handlers in the main thread, between two of its own instructions. A compiler or a loader may
keep that thread for minutes, so a second thread hears of each signal from the interpreter and acts if the first
cannot.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

from operant.errors import EXIT_STOPPED

SIGNALS = (signal.SIGINT, signal.SIGTERM)
NOTICE = b"\nstopping after this update, then saving; once more to stop now (what was saved before stays good)\n"
NOTICE_NOW = b"\nstopping now: nothing was trained since the last checkpoint\n"
HANDLER_SECONDS = 2.0
UNWINDING_SECONDS = 20.0


class StopRequest:
    """Within this context the first SIGINT or SIGTERM sets `requested`, and more only where every guard agrees.

    Signals belong to the main thread; in any other thread this installs nothing.
    """

    def __init__(self) -> None:
        self.requested = False
        self._process = os.getpid()
        self._previous: dict[int, Any] = {}
        self._guards: list[Callable[[], bool]] = []
        self._thread: _SignalThread | None = None
        self._answered_by_thread = False

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                self._previous[number] = signal.signal(number, self._receive)
            self._thread = _SignalThread(self._heard)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._thread.close()
            self._thread = None
        for number, handler in self._previous.items():
            # None stands for a handler that was not installed from Python and cannot be put back from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._previous.clear()

    def guard(self, may_end_now: Callable[[], bool]) -> None:
        """Ask this, too, whether an end at once would lose nothing."""
        self._guards.append(may_end_now)

    def unguard(self, may_end_now: Callable[[], bool]) -> None:
        """No longer ask this one."""
        with suppress(ValueError):
            self._guards.remove(may_end_now)

    def obey(self) -> None:
        """End at once, by `KeyboardInterrupt`, if a stop was requested and nothing would be lost."""
        if self.requested and self._may_end_now():
            raise KeyboardInterrupt

    def _may_end_now(self) -> bool:
        return bool(self._guards) and all(agrees() for agrees in self._guards)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            self._receive_in_worker(number)
        elif self._answered_by_thread:
            # The first signal, which only now got through to this thread.
            self._answered_by_thread = False
            self.obey()
        elif self.requested:
            os._exit(EXIT_STOPPED)
        else:
            self._request()
            self.obey()

    def _request(self) -> None:
        self.requested = True
        with suppress(OSError):
            os.write(2, NOTICE_NOW if self._may_end_now() else NOTICE)

    def _receive_in_worker(self, number: int) -> None:
        """A forked worker serves its parent: Ctrl-C is the parent's to answer, SIGTERM comes from the parent."""
        if number == signal.SIGTERM:
            os._exit(128 + number)

    def _heard(self, count: int) -> None:
        """In the second thread, at each signal: do what the main thread ought to do, if it does not get to it."""
        if count > 1:
            os._exit(EXIT_STOPPED)
        _wait_while(lambda: not self.requested, HANDLER_SECONDS)
        if self.requested:
            # The main thread knows, and unwinds: its phase is over before it closes what it opened.
            _wait_while(self._may_end_now, UNWINDING_SECONDS)
        else:
            self._answered_by_thread = True
            self._request()
        if self._may_end_now():
            os._exit(EXIT_STOPPED)


class _SignalThread:
    """A thread that the interpreter itself notifies of each signal, whatever the main thread does."""

    def __init__(self, heard: Callable[[int], None]) -> None:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._before = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._listen, args=(heard,), name="stop-request", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        with suppress(ValueError):
            signal.set_wakeup_fd(self._before)
        os.close(self._writing)

    def _listen(self, heard: Callable[[int], None]) -> None:
        count = 0
        while numbers := os.read(self._reading, 64):
            for number in numbers:
                if number in SIGNALS:
                    count += 1
                    threading.Thread(target=heard, args=(count,), daemon=True).start()
        os.close(self._reading)


def _wait_while(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while condition() and time.monotonic() < deadline:
        time.sleep(0.02)


def _deafen() -> None:
    """A forked worker's signals are not its parent's."""
    with suppress(ValueError):
        signal.set_wakeup_fd(-1)


os.register_at_fork(after_in_child=_deafen)
