from __future__ import annotations

import os
import signal

from operant.launch.stop_signals import StopPresses


def test_requests_are_counted_and_end_nothing() -> None:
    with StopPresses() as presses:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(os.getpid(), number)
        assert presses.count == 3


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with StopPresses():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before
