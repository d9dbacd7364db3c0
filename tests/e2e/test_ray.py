"""Training on Ray: actors are killed while it goes on, and every prompt is accounted for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from operant.errors import EXIT_STOPPED
from operant.run.metrics import read_rows
from tests.processes import marked

# Not imported to find out: that takes seconds of every collection.
present = pytest.mark.skipif(find_spec("ray") is None, reason="needs the package ray")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), present]

SPEC = """
name: small
env: {name: copy, max_frame: 1024, text: {arguments: {style: bare, letters: 5}, max_tokens: 40, workers: 2}}
agent:
  algorithm: {name: grpo, group_size: 4, batch_size: 32, warmup: {updates: 10, batch_size: 32}}
  model: {source: tiny, tiny: {layers: 2, width: 64, heads: 2, context: 64}, optimizer: {lr: 0.0005}}
meta:
  {max_session: 1, log_frequency: 32, eval_frequency: 512, save_frequency: 128, eval_episodes: 8, final_episodes: 8}
"""
ACTORS = ["generator 0", "generator 1", "verifier 0", "verifier 1"]


def begin(folder: Path, *settings: str) -> subprocess.Popen[str]:
    """Start training in a process of its own."""
    (folder / "small.yaml").write_text(SPEC)
    flags = [flag for setting in settings for flag in ("-s", setting)]
    command = [sys.executable, "-m", "operant", "train", "small.yaml", "--root", "runs", *flags]
    # In a group of its own, which a test that gives up can end.
    process = subprocess.Popen(
        command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    BEGUN.append(process)
    return process


BEGUN: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """What a failed test has begun ends with it."""
    yield
    while BEGUN:
        process = BEGUN.pop()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def on_ray(*more: str) -> tuple[str, ...]:
    """The settings of two generators and two verifiers in a small store."""
    return ("meta.cluster=ray", "meta.ray.store_mb=200", "meta.ray.generators=2", *more)


def session_of(folder: Path) -> Path:
    """The run directory, once it is there."""
    while not (found := list(folder.glob("runs/small/*/trial_000/session_0"))):
        time.sleep(0.2)
    return found[0]


def placed(session: Path, rounds: int) -> dict[str, int]:
    """The process of every actor, once so many rounds are done."""
    pids: dict[str, int] = {}
    while len(pids) < len(ACTORS) or sum(row["name"] == "train" for row in events(session)) < rounds:
        assert BEGUN[-1].poll() is None, BEGUN[-1].communicate()[0]
        time.sleep(0.2)
        pids = {name_of(session, row): row["args"]["pid"] for row in events(session) if row["name"] == "placed"}
    return pids


def events(session: Path) -> list[dict[str, Any]]:
    """The trace so far."""
    path = session / "trace.json"
    text = path.read_text().rstrip(",\n") if path.exists() else ""
    return json.loads(text + "]") if text else []


def name_of(session: Path, row: dict[str, Any]) -> str:
    """The component in whose row an event is."""
    names = {each["tid"]: each["args"]["name"] for each in events(session) if each["name"] == "thread_name"}
    return names[row["tid"]]


def of_ray() -> set[int]:
    """The processes that Ray has running."""
    return {pid for mark in ("ray::", "raylet", "gcs_server", "ray/dashboard") for pid in marked(mark)}


def trainer_of(session: Path) -> int:
    """The process that trains."""
    place = Path(*session.parts[-5:])
    (pid,) = {*marked(f"operant session {session}"), *marked(f"operant session {place}")}
    return pid


@pytest.mark.parametrize("staleness", [0, 1])
def test_killed_actors_lose_no_prompt(tmp_path: Path, staleness: int) -> None:
    before = of_ray()
    process = begin(tmp_path, *on_ray(f"agent.algorithm.staleness={staleness}"))
    session = session_of(tmp_path)
    pids = placed(session, rounds=2)
    assert sorted(pids) == ACTORS
    for name in ("generator 1", "verifier 0"):
        os.kill(pids[name], signal.SIGKILL)
    output, _ = process.communicate(timeout=500)
    assert process.returncode == 0, output

    told = [row["message"] for row in read_rows(session / "events.jsonl") if row["kind"] == "replaced"]
    print(*told, sep="\n")
    assert any("generator 1" in line for line in told)
    assert any("verifier 0" in line for line in told)
    steps = [row for row in events(session) if row.get("cat") == "prompt"]
    begun = [row["id"] for row in steps if row["ph"] == "b"]
    fates = {row["id"]: row["args"]["step"] for row in steps if row["ph"] == "e"}
    print(Counter(row["args"]["step"] for row in steps))
    assert len(begun) == len(set(begun))
    assert set(begun) == set(fates) == set(range(len(begun)))
    used = [fate for fate in fates.values() if fate != "left"]
    assert Counter(used).keys() <= {"trained", "dropped"}
    assert len(used) == 1024 // 4
    last = [row for row in read_rows(session / "metrics.jsonl") if "final/score" in row]
    assert last
    assert last[0]["frames"] == 1024
    time.sleep(2)
    assert of_ray() <= before


def test_one_replica_gives_the_numbers_of_the_local_path(tmp_path: Path) -> None:
    rows = []
    for place, settings in (("here", ()), ("ray", ("meta.cluster=ray", "meta.ray.store_mb=200"))):
        (tmp_path / place).mkdir()
        output, _ = begin(tmp_path / place, *settings, "env.max_frame=128").communicate(timeout=300)
        found = read_rows(session_of(tmp_path / place) / "metrics.jsonl")
        assert found, output
        rows.append([{key: row[key] for key in row if key != "seconds" and "perf/" not in key} for row in found])
    for here, there in zip(*rows, strict=True):
        assert there == pytest.approx(here, rel=1e-5, abs=1e-6), json.dumps([here, there])


def test_a_killed_trainer_leaves_nothing_behind_and_resumes(tmp_path: Path) -> None:
    before = of_ray()
    process = begin(tmp_path, *on_ray("agent.algorithm.staleness=2"))
    session = session_of(tmp_path)
    placed(session, rounds=4)
    os.kill(trainer_of(session), signal.SIGKILL)
    process.communicate()
    for _ in range(450):
        # Ray's two agents look for their parent now and then only.
        if of_ray() <= before:
            break
        time.sleep(0.2)
    assert of_ray() <= before
    command = [sys.executable, "-m", "operant", "resume", str(session.parent.parent)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "warm resume" in done.stdout + done.stderr


def test_a_stop_is_answered_and_ends_ray_too(tmp_path: Path) -> None:
    before = of_ray()
    process = begin(tmp_path, *on_ray("agent.algorithm.staleness=1"))
    session = session_of(tmp_path)
    placed(session, rounds=2)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == EXIT_STOPPED, output
    assert json.loads((session / "run.json").read_text())["state"] == "stopped"
    time.sleep(2)
    assert of_ray() <= before
