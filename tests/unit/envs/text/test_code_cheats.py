"""Programs that cheat, run for real: none gets a score, and nothing of them is left on the machine."""

from __future__ import annotations

import os
import threading
import time
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from operant.envs.sandbox import bubblewrap
from operant.envs.text import code
from operant.envs.text.code import Checks, verify_program
from tests.processes import command, marked, wait_until

pytestmark = pytest.mark.skipif(bool(bubblewrap.trouble()), reason=f"no sandbox: {bubblewrap.trouble()}")

HONEST = "def add(a, b):\n    return a + b\n"
TESTS = Checks(("add",), ("assert add(2, 3) == 5", "assert add(-1, 1) == 0", "assert add(10, 20) == 30"))


def programs() -> dict[str, str]:
    """The cheating programs by their headings."""
    text = Path(__file__).with_name("cheats.txt").read_text()
    return dict(section.split("\n", 1) for section in text.split("\n=== ")[1:])


CHEATS = {name: program for name, program in programs().items() if not name.startswith("endless: ")}
ENDLESS = {name: program for name, program in programs().items() if name.startswith("endless: ")}
OFTEN = ("endless: an endless loop", "endless: a bomb that goes on", "endless: no signal ends it")


def test_an_honest_program_is_right() -> None:
    assert verify_program(HONEST, TESTS).score == 1.0


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_scores_nothing_and_leaves_nothing(name: str) -> None:
    mark = uuid.uuid4().hex
    verdict = verify_program(CHEATS[name].replace("MARK", mark), TESTS)
    assert verdict.score == 0.0, verdict
    assert_nothing_left(mark)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in OFTEN else pytest.mark.slow) for name in ENDLESS]
)
def test_an_endless_program_is_out_of_time(name: str) -> None:
    began = time.monotonic()
    verdict = verify_program(ENDLESS[name], TESTS, seconds=2.0)
    assert (verdict.score, verdict.note) == (0.0, code.OUT_OF_TIME), verdict
    assert time.monotonic() - began < 30
    assert wait_until(lambda: not wrappers())


def test_a_program_that_uses_up_its_processor_time_is_out_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "LIMITS", replace(code.LIMITS, cpu_seconds=1))
    verdict = verify_program("while True: pass", TESTS)
    assert (verdict.score, verdict.note) == (0.0, "more than 1 s of processor time")


def test_a_machine_without_time_is_no_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "_sandbox_verifies", lambda seconds=0.0: False)
    verdict = verify_program("import time\ntime.sleep(60)", TESTS, seconds=0.5)
    assert (verdict.score, verdict.outcome) == (None, "timeout")


def assert_nothing_left(mark: str) -> None:
    """No child of ours, no process and no file with the mark."""
    assert wait_until(lambda: not wrappers())
    assert wait_until(lambda: not marked(mark))
    assert [
        root for root in ("/", "/tmp", "/usr", "/dev", "/dev/shm", "/work") if os.path.exists(f"{root}/{mark}")
    ] == []


def wrappers() -> list[str]:
    """The sandboxes that this thread has open."""
    children = Path(f"/proc/{os.getpid()}/task/{threading.get_native_id()}/children").read_text().split()
    return [line for line in map(command, map(int, children)) if "bwrap" in line or "sandbox" in line]
