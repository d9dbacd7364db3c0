from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from operant.app import server
from operant.errors import RunError, UsageError
from operant.install import install_extra

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture(autouse=True)
def as_before() -> object:
    """The handlers of signals as they were."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_app_and_is_no_failure(number: signal.Signals) -> None:
    threading.Timer(0.5, lambda: os.kill(os.getpid(), number)).start()
    began = time.monotonic()
    assert server.attend(SLEEPER, "http://127.0.0.1:1", browser=False) == 0
    assert time.monotonic() - began < 20


def test_an_app_that_fails_by_itself_is_a_failure() -> None:
    with pytest.raises(RunError, match="the app ended with exit code 3"):
        server.attend([sys.executable, "-c", "raise SystemExit(3)"], "http://127.0.0.1:1", browser=False)


def test_a_process_that_ended_is_not_waited_for() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    began = time.monotonic()
    assert not server.wait_until_ready("http://127.0.0.1:1", process)
    assert time.monotonic() - began < 5


def test_a_free_port_is_found() -> None:
    assert server.check_port(0) > 0


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: None if name == "plotly" else name)
    with pytest.raises(UsageError, match="the app needs plotly, which is not installed") as told:
        server.check_packages()
    assert told.value.remedy == install_extra("app")
