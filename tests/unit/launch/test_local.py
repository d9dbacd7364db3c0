from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from operant.launch.launcher import Resources, Ticket
from operant.launch.local import LocalLauncher
from operant.launch.parent_watch import PARENT_VARIABLE

PATIENT = """
import signal, sys, time
def note(number, frame):
    print("asked", flush=True)
signal.signal(signal.SIGINT, note)
print("ready", flush=True)
time.sleep(30)
"""


@pytest.fixture
def launcher() -> LocalLauncher:
    return LocalLauncher()


def submit(launcher: LocalLauncher, tmp_path: Path, code: str, threads: int = 1) -> Ticket:
    resources = Resources(threads=threads, log=tmp_path / "logs" / "attempt_001.log")
    return launcher.submit([sys.executable, "-c", code], resources, "job")


def wait(launcher: LocalLauncher, ticket: Ticket) -> int:
    deadline = time.monotonic() + 20
    while (code := launcher.poll(ticket)) is None:
        assert time.monotonic() < deadline, "the job did not end"
        time.sleep(0.02)
    return code


def lines(ticket: Ticket) -> list[str]:
    return ticket.log.read_text().splitlines(keepends=True)


def wait_for_line(launcher: LocalLauncher, ticket: Ticket, line: str) -> None:
    deadline = time.monotonic() + 20
    while line not in [each.strip() for each in lines(ticket)]:
        assert time.monotonic() < deadline, f"the job never said {line!r}"
        time.sleep(0.02)


def test_output_of_both_streams_goes_to_the_log(launcher: LocalLauncher, tmp_path: Path) -> None:
    ticket = submit(launcher, tmp_path, "import sys; print('one'); print('two', file=sys.stderr); sys.exit(3)")
    assert wait(launcher, ticket) == 3
    assert [line.strip() for line in lines(ticket)] == ["one", "two"]


def test_a_log_is_appended_to_never_overwritten(launcher: LocalLauncher, tmp_path: Path) -> None:
    for word in ("first", "second"):
        ticket = submit(launcher, tmp_path, f"print('{word}')")
        wait(launcher, ticket)
    assert [line.strip() for line in lines(ticket)] == ["first", "second"]


def test_a_job_knows_its_threads_and_the_process_it_must_not_outlive(launcher: LocalLauncher, tmp_path: Path) -> None:
    code = f"import os; print(os.environ['OMP_NUM_THREADS'], os.environ['{PARENT_VARIABLE}'])"
    ticket = submit(launcher, tmp_path, code, threads=5)
    wait(launcher, ticket)
    assert list(lines(ticket)) == [f"5 {os.getpid()}\n"]


def test_a_job_has_its_own_process_session_so_ctrl_c_does_not_reach_it(launcher: LocalLauncher, tmp_path: Path) -> None:
    ticket = submit(launcher, tmp_path, "import os; print(os.getsid(0) == os.getpid())")
    wait(launcher, ticket)
    assert list(lines(ticket)) == ["True\n"]


def test_cancel_asks_first_and_kills_second(launcher: LocalLauncher, tmp_path: Path) -> None:
    ticket = submit(launcher, tmp_path, PATIENT)
    wait_for_line(launcher, ticket, "ready")
    launcher.cancel(ticket)
    wait_for_line(launcher, ticket, "asked")
    assert launcher.poll(ticket) is None
    launcher.cancel(ticket)
    assert wait(launcher, ticket) == -signal.SIGKILL


def test_cancelling_a_job_that_ended_is_harmless(launcher: LocalLauncher, tmp_path: Path) -> None:
    ticket = submit(launcher, tmp_path, "pass")
    wait(launcher, ticket)
    launcher.cancel(ticket)
    launcher.cancel(ticket)
    assert launcher.poll(ticket) == 0
