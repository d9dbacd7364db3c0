from __future__ import annotations

import os
import signal

from operant.launch.stop_signals import StopSignals


def test_requests_are_counted_and_end_nothing() -> None:
    with StopSignals() as signals:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(os.getpid(), number)
        assert signals.count == 3


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with StopSignals():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before
