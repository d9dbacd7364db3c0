"""The first process and the others: who comes, who is refused and why, what is said, and who died."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from operant.errors import EXIT_FAILED, EXIT_STOPPED, EXIT_USAGE, RunError, UsageError
from operant.run.processes import leader as module
from operant.run.processes.distributed_config import DistributedConfig
from operant.run.processes.leader import Leader
from operant.run.run import Run

FOLLOWER = """
import json, sys
from pathlib import Path
from operant.run.processes.follower import follow
from operant.run.processes.distributed_config import DistributedConfig

port, number, count, spec, patch, seconds = json.loads(sys.argv[1])
exec(patch)

def obey(order):
    if order["order"] == "read":
        print((Path(order["folder"]) / "a" / "b.txt").read_text(), flush=True)
    if order["order"] == "raise":
        raise ValueError("no such thing")

def member(follower):
    print(follower.engine, follower.threads, follower.local_id, flush=True)
    return obey

try:
    sys.exit(follow(DistributedConfig("127.0.0.1", port, count, number, seconds), spec, member))
except Exception as error:
    print(error, file=sys.stderr)
    sys.exit(getattr(error, "exit_code", 1))
"""
SPEC = {"env": {"num_envs": 4}, "meta": {"processes": 3}}
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path / "run", name="a", spec=SPEC, seed=0, session=0, threads=2)


@pytest.fixture
def start(port: int) -> Iterator[Start]:
    """Starts a follower; what is left at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def begin(
        number: int, count: int = 2, spec: Any = SPEC, patch: str = "", seconds: float = 30.0
    ) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", FOLLOWER, json.dumps([port, number, count, spec, patch, seconds])]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
        process = subprocess.Popen(words, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def lead(port: int, run: Run, count: int = 2, seconds: float = 30.0, stuck: Callable[[str], object] = print) -> Leader:
    return Leader(DistributedConfig("127.0.0.1", port, count, 0, seconds), run, "torch", stuck)


def test_orders_files_and_the_exit_code_reach_the_others(port: int, run: Run, start: Start, tmp_path: Path) -> None:
    others = [start(number, 3) for number in (1, 2)]
    leader = lead(port, run, 3)
    (tmp_path / "b.txt").write_text("content")
    leader.tell("read", {"a/b.txt": tmp_path / "b.txt"})
    leader.dismiss(EXIT_STOPPED)
    for number, process in enumerate(others, start=1):
        assert process.communicate(timeout=20)[0] == f"torch 2 {number}\ncontent\n"
        assert process.returncode == EXIT_STOPPED


def test_a_process_that_does_not_come_is_named_to_all(port: int, run: Run, start: Start) -> None:
    came = start(2, 4)
    with pytest.raises(RunError, match=r"processes 1, 3 of 0 to 3 did not come to 127.0.0.1:\d+ within 8 s"):
        lead(port, run, 4, seconds=8.0)
    assert "processes 1, 3 of 0 to 3 did not come" in came.communicate(timeout=20)[1]
    assert came.returncode == EXIT_USAGE


def test_a_leader_that_does_not_come_is_named(start: Start) -> None:
    alone = start(1, seconds=0.5)
    assert "process 0 did not answer process 1 at 127.0.0.1" in alone.communicate(timeout=20)[1]
    assert alone.returncode == EXIT_FAILED


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"spec": {**SPEC, "env": {"num_envs": 8}}}, "has another spec: env.num_envs is 8 there and 4 for process 0"),
        ({"count": 3}, "counts 3 processes, and process 0 2"),
        (
            {"patch": "from operant.run.processes import member; member.source_files = lambda: {'a.py': '1'}"},
            "has another Operant than process 0",
        ),
        (
            {"patch": "from operant.run.processes import member; member.installed_packages = lambda: {'jax': '0.1'}"},
            "has jax 0.1, and process 0 has",
        ),
    ],
)
def test_one_that_differs_is_refused(port: int, run: Run, start: Start, given: dict[str, Any], told: str) -> None:
    other = start(1, **given)
    with pytest.raises(UsageError) as refused:
        lead(port, run)
    assert told in refused.value.cause
    assert told in other.communicate(timeout=20)[1]
    assert other.returncode == EXIT_USAGE


def test_two_of_one_number_are_refused(port: int, run: Run, start: Start) -> None:
    start(1, 3)
    start(1, 3)
    with pytest.raises(UsageError, match="two processes say that they are process 1"):
        lead(port, run, 3)


def test_one_that_asks_something_else_is_not_listened_to(port: int, run: Run, start: Start) -> None:
    def scan() -> None:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", port)) as stranger:
                    stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
                return
            except OSError:
                time.sleep(0.02)

    threading.Thread(target=scan).start()
    other = start(1)
    lead(port, run).dismiss(0)
    assert other.wait(20) == 0


def test_the_one_that_died_is_named_to_those_that_live(port: int, run: Run, start: Start) -> None:
    killed, other = start(1, 3), start(2, 3)
    leader = lead(port, run, 3)
    killed.send_signal(signal.SIGKILL)
    death = leader.failure()
    assert death is not None
    assert f"(pid {killed.pid}) died: its connection closed" in death.cause
    assert death.cause.startswith("process 1 of 0 to 2 on ")
    assert "process 1 of 0 to 2" in other.communicate(timeout=20)[1]
    assert other.returncode == EXIT_FAILED
    leader.fail("over")


def test_one_that_fails_says_of_what(port: int, run: Run, start: Start) -> None:
    start(1)
    leader = lead(port, run)
    leader.tell("raise")
    time.sleep(0.5)
    death = leader.failure()
    assert death is not None
    assert death.cause.endswith("died: ValueError: no such thing")
    leader.fail("over")


def test_a_leader_that_hangs_on_the_dead_is_ended_when_it_has_recorded_why(
    port: int, run: Run, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: list[str] = []
    ended: list[int] = []
    monkeypatch.setattr(module, "STUCK_SECONDS", 0.2)
    monkeypatch.setattr(module.os, "_exit", ended.append)
    killed = start(1)
    leader = lead(port, run, stuck=recorded.append)
    killed.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while not ended and time.monotonic() < deadline:
        time.sleep(0.02)
    assert ended == [EXIT_FAILED]
    assert "process 1 of 0 to 1" in recorded[0]
    leader.fail("over")


def test_the_others_do_not_outlive_a_leader(port: int, start: Start, tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from operant.run.processes.leader import Leader;"
        "from operant.run.processes.distributed_config import DistributedConfig; from operant.run.run import Run;"
        f"Leader(DistributedConfig('127.0.0.1', {port}, 2, 0, 20.0), Run.open(Path(sys.argv[1])), 'jax', print);"
        "print('here', flush=True); time.sleep(60)"
    )
    Run.create(tmp_path / "run", name="a", spec=SPEC, seed=0, session=0, threads=2)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    first = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "run")], env=environment, text=True, stdout=subprocess.PIPE
    )
    other = start(1)
    assert first.stdout is not None
    assert first.stdout.readline() == "here\n"
    first.kill()
    first.communicate()
    assert f"process 0 of 0 to 1 at 127.0.0.1:{port} died" in other.communicate(timeout=20)[1]
    assert other.returncode == EXIT_FAILED
