from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from operant.run.stop import StopRequest

WAIT = """
import sys, time
from operant.run.stop import StopRequest
with StopRequest() as stop:
    print("ready", flush=True)
    while not stop.requested:
        time.sleep(0.005)
    print("asked", flush=True)
    time.sleep(float(sys.argv[1]))
print("saved", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_only_asks(start, number: signal.Signals):
    child = start("-c", WAIT, 0)
    assert child.stdout.readline() == "ready\n"
    child.send_signal(number)
    out, err = child.communicate(timeout=10)
    assert (out, child.returncode) == ("asked\nsaved\n", 0)
    assert "once more to stop now" in err


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_ends_the_process_at_once(start, second: signal.Signals):
    child = start("-c", WAIT, 60)
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == "asked\n"
    began = time.monotonic()
    child.send_signal(second)
    out, _ = child.communicate(timeout=10)
    assert (out, child.returncode) == ("", 4)
    assert time.monotonic() - began < 5


def test_a_forked_worker_ignores_ctrl_c_and_obeys_its_parent(start):
    code = """
import os, signal, time
from operant.run.stop import StopRequest
with StopRequest():
    worker = os.fork()
    if worker == 0:
        time.sleep(60)
        os._exit(0)
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
        time.sleep(0.05)
        assert os.waitpid(worker, os.WNOHANG) == (0, 0)
        os.kill(worker, number)
    print(os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]))
"""
    out, _ = start("-c", code).communicate(timeout=10)
    assert out == "143\n"


def test_handlers_are_put_back():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with StopRequest() as stop:
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] != before
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.requested
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_other_threads_install_nothing():
    seen = []

    def enter() -> None:
        with StopRequest() as stop:
            seen.append((stop.requested, signal.getsignal(signal.SIGINT)))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [(False, before)]
