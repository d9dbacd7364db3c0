from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from operant.errors import RunError
from operant.run import lock as lock_module
from operant.run.lock import RunLock, is_held
from tests.processes import wait_until

HOLD = """
import os, sys, time
from pathlib import Path
from operant.run.lock import RunLock
RunLock(Path(sys.argv[1])).acquire()
if len(sys.argv) > 2 and os.fork() == 0:
    os.close(1)
    os.close(2)
    time.sleep(30)
    os._exit(0)
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_module, "PATIENCE_SECONDS", 0.1)


def write_note(path: Path, host: str, age: float) -> None:
    path.write_text(json.dumps({"pid": 123, "host": host, "started": "2026-01-01T00:00:00+00:00"}))
    os.utime(path, (time.time() - age, time.time() - age))


def test_a_lock_is_held_until_released(path: Path):
    lock = RunLock(path)
    assert not is_held(path)
    lock.acquire()
    assert is_held(path)
    assert lock.is_mine()
    note = json.loads(path.read_text())
    assert note["pid"] == os.getpid()
    assert set(note) == {"pid", "host", "launcher", "started"}
    lock.release()
    assert not is_held(path)
    lock.release()


@pytest.mark.usefixtures("impatient")
def test_a_second_process_is_refused_and_told_who_has_it(path: Path, start):
    holder = start("-c", HOLD, path)
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(RunError, match=rf"is being written by process {holder.pid} on \S+, heartbeat \d+ s ago"):
        RunLock(path).acquire()
    assert is_held(path)


def test_killing_the_holder_frees_the_lock_at_once(path: Path, start):
    holder = start("-c", HOLD, path)
    assert holder.stdout.readline() == "held\n"
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert not is_held(path)
    lock = RunLock(path)
    lock.acquire()
    lock.release()


def test_a_forked_worker_does_not_keep_its_dead_parents_lock(path: Path, start):
    holder = start("-W", "ignore", "-c", HOLD, path, "with a worker")
    assert holder.stdout.readline() == "held\n"
    assert is_held(path)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    # The worker lets go as soon as it first runs, which on a busy machine may be after its parent's death.
    deadline = time.monotonic() + 10
    while is_held(path) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_held(path)


@pytest.mark.usefixtures("impatient")
def test_one_process_cannot_take_it_twice(path: Path):
    lock = RunLock(path)
    lock.acquire()
    with pytest.raises(RunError, match="is being written"):
        RunLock(path).acquire()
    lock.release()


@pytest.mark.usefixtures("impatient")
def test_another_host_counts_while_its_heart_beats(path: Path):
    write_note(path, "far-away", age=30)
    assert is_held(path)
    with pytest.raises(RunError, match="process 123 on far-away, heartbeat 30 s ago") as caught:
        RunLock(path).acquire()
    assert "60 s" in str(caught.value.remedy)
    write_note(path, "far-away", age=90)
    assert not is_held(path)
    lock = RunLock(path)
    lock.acquire()
    lock.release()


def test_looking_does_not_get_in_the_way_of_taking(path: Path):
    path.touch()
    looking = os.open(path, os.O_RDONLY)
    lock_module.fcntl.flock(looking, lock_module.fcntl.LOCK_SH)
    began = time.monotonic()
    lock = RunLock(path)
    timer = lock_module.threading.Timer(0.1, os.close, [looking])
    timer.start()
    lock.acquire()
    assert time.monotonic() - began > 0.05
    lock.release()
    timer.join()


def test_the_heart_beats_and_notices_a_takeover(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lock_module, "HEARTBEAT_SECONDS", 0.01)
    lock = RunLock(path)
    lock.acquire()
    os.utime(path, (0, 0))
    assert wait_until(lambda: path.stat().st_mtime > 1)
    assert not lock.lost
    write_note(path, "far-away", age=10)
    assert wait_until(lambda: lock.lost)
    assert not lock.is_mine()
    lock.release()
    assert json.loads(path.read_text())["host"] == "far-away", "the new holder's note is left alone"


def test_a_missing_lock_is_not_held(tmp_path: Path):
    assert not is_held(tmp_path / "nowhere" / "lock")
