"""Many rollouts at once while their sandboxes are killed: all are accounted for, and nothing is shared or left."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from operant.envs.research.workbench import ResearchTask
from operant.envs.sandbox import open_sandbox
from operant.envs.text.task import Problem, Verdict

THREADS = 8
DIED = "died and was made anew"


@dataclass(frozen=True)
class Told:
    """What became of a rollout: its verdict, and what it found where only its own token may be."""

    problem: Problem
    verdict: Verdict
    tokens: tuple[str, ...]
    deaths: int


def play(task: ResearchTask, problem: Problem) -> Told:
    rollout = task.begin(problem, 0)
    words = [
        f"bash [ -e token ] && cat token; echo {problem.id} > token",
        "```write solution.py\ndef solve(n):\n    return 2 * n\n```",
        "bash sleep 0.05; cat token",
        "validate",
        "bash cat token",
        "submit",
    ]
    try:
        said = []
        for text in words:
            response = rollout.hear(text)
            said.append(response.messages[0].text)
            if response.done:
                break
        verdict = rollout.verdict()
        tokens = [line for text in said for line in text.splitlines() if line.startswith("guess/")]
        return Told(problem, verdict, tuple(tokens), sum(DIED in text for text in said))
    finally:
        rollout.close()


def offspring() -> dict[int, str]:
    """The living processes below this one, and their command lines."""
    parents: dict[int, int] = {}
    lines: dict[int, str] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, IndexError):
            parents[int(name)] = int(Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[1])
            lines[int(name)] = Path(f"/proc/{name}/cmdline").read_bytes().decode(errors="replace")
    found, frontier = set(), {os.getpid()}
    while frontier:
        frontier = {pid for pid, parent in parents.items() if parent in frontier}
        found |= frontier
    return {pid: lines[pid] for pid in found if pid in lines}


def kill_at_random(stop: threading.Event, every: float, killed: list[int]) -> None:
    """Now and then, kill a process of some sandbox without warning."""
    rng = Random(0)
    while not stop.wait(rng.uniform(0, 2 * every)):
        if boxes := [pid for pid, line in offspring().items() if line.startswith("bwrap")]:
            with suppress(ProcessLookupError):
                os.kill(rng.choice(boxes), signal.SIGKILL)
                killed.append(1)


def survive(rollouts: int, every: float) -> tuple[list[Told], int]:
    """Play so many rollouts, eight at a time, while sandboxes are killed."""
    task = ResearchTask(str(Path(__file__).with_name("guess")), instances=rollouts)
    task.prepare()
    stop, killed = threading.Event(), []
    killer = threading.Thread(target=kill_at_random, args=(stop, every, killed))
    killer.start()
    try:
        with ThreadPoolExecutor(THREADS) as threads:
            told = list(threads.map(lambda problem: play(task, problem), task.problems("train")))
    finally:
        stop.set()
        killer.join()
    return told, len(killed)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where everything that is made for a while would be made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def check(rollouts: int, every: float, folder: Path) -> None:
    before, threads, files = set(offspring()), threading.active_count(), open_files()
    began = time.monotonic()
    told, killed = survive(rollouts, every)
    seconds = time.monotonic() - began
    outcomes = Counter(one.verdict.outcome for one in told)
    deaths = sum(one.verdict.parts["reopened"] for one in told)
    print(f"{rollouts} rollouts, {killed} kills, {deaths:.0f} workspaces lost, {outcomes}, {seconds:.1f} s")
    assert len(told) == rollouts
    assert set(outcomes) <= {"right", "wrong", "error"}
    assert all(one.verdict.note for one in told if one.verdict.outcome != "right"), "what went wrong is said"
    assert all(one.verdict.score == 1.0 for one in told if not one.verdict.note)
    assert all(token == one.problem.id for one in told for token in one.tokens), "no rollout sees another's files"
    assert killed > rollouts // 20
    assert set(offspring()) <= before
    assert threading.active_count() == threads
    assert open_files() == files
    assert not list(folder.iterdir())


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_killed_sandboxes_cost_no_episode(folder: Path) -> None:
    check(rollouts=24, every=0.15, folder=folder)


@pytest.mark.slow
def test_two_hundred_rollouts_with_killed_sandboxes(folder: Path) -> None:
    check(rollouts=200, every=0.1, folder=folder)


@pytest.mark.slow
def test_a_sandbox_starts_in_less_than_a_tenth_of_a_second() -> None:
    """With a few tries, for the machine may be busy."""
    times = []
    for _ in range(20):
        began = time.perf_counter()
        with open_sandbox():
            times.append(time.perf_counter() - began)
    print(f"a sandbox opens in {min(times):.3f} to {max(times):.3f} s, median {sorted(times)[10]:.3f} s")
    assert min(times) < 0.1
