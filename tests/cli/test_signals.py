"""Ctrl-C, a killed session and a killed parent, on real processes."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.processes import lives, wait_until

if TYPE_CHECKING:
    from tests.cli.conftest import Operant, Toy

PATIENCE = 60.0

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(toy: Toy) -> Iterator[Start]:
    """Starts a command in the background, and ends it with the test."""
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "operant", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def wait_for(true: Callable[[], bool], what: str) -> None:
    assert wait_until(true, PATIENCE), f"never: {what}"


def training(toy: Toy) -> int:
    """How many sessions run and have written a metric row."""
    running = [run.path / "metrics.jsonl" for run in toy.sessions() if run.state == "running"]
    return sum(rows.exists() and rows.stat().st_size > 0 for rows in running)


def pid_of(toy: Toy) -> int:
    """The process of the only session."""
    return json.loads((toy.sessions()[0].path / "lock").read_text())["pid"]


def rows_of(toy: Toy) -> list[str]:
    """The metric rows of the only session."""
    files = [run.path / "metrics.jsonl" for run in toy.sessions()]
    return files[0].read_text().splitlines() if files and files[0].exists() else []


def test_first_words_come_within_a_second_of_work(start: Start) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = start("train", "toy.yaml")
    assert process.stdout is not None
    assert process.stdout.readline() == "operant train toy.yaml\n"
    process.kill()
    process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0


def test_ctrl_c_once_saves_and_says_how_to_go_on(toy: Toy, start: Start) -> None:
    toy.write(frames=100_000, pause=0.02)
    process = start("train", "toy.yaml")
    wait_for(lambda: training(toy) == 2, "two sessions training")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 4
    assert "stopping: each session finishes its update and saves; Ctrl-C again to stop now" in err
    assert "stopped; the checkpoints are good. Continue: operant resume runs/toy/" in out
    assert "Traceback" not in out + err
    for run in toy.sessions():
        assert run.state == "stopped"
        rows = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
        newest = sorted(path.name for path in run.checkpoints.iterdir() if path.name.isdigit())[-1]
        assert int(newest) == rows[-1]["frames"]


def test_ctrl_c_twice_stops_now(toy: Toy, start: Start) -> None:
    toy.write(frames=100_000, sessions=1, pause=60.0, pause_from=20)
    process = start("train", "toy.yaml")
    wait_for(lambda: len(rows_of(toy)) == 2, "a session in its long third update")
    time.sleep(0.5)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 4
    assert time.monotonic() - begun < 30.0
    assert "stopping now; nothing was saved yet, so a resume starts at frame 0" in err
    assert toy.states() == ["stopped"]


def test_ctrl_c_is_heard_in_native_code_and_nothing_saved_is_not_called_good(toy: Toy, start: Start) -> None:
    toy.write(sessions=1, native_seconds=120)
    process = start("train", "toy.yaml", "--plain")
    assert process.stdout is not None
    told = next(line for line in process.stdout if "compiling" in line)
    assert re.fullmatch(r"session_0 .* compiling \d+ s\n", told)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert time.monotonic() - begun < 60
    assert process.returncode == 4
    assert "nothing was trained since the last checkpoint, so each session ends now" in err
    assert "stopped; nothing was saved yet, so a resume starts at frame 0. Continue: operant resume runs/toy/" in out
    assert "good" not in out
    assert toy.states() == ["stopped"]


@pytest.mark.slow
def test_a_job_that_can_hear_nothing_is_ended_by_its_launcher(toy: Toy, start: Start) -> None:
    toy.write(sessions=1, native_seconds=120, deaf=1)
    process = start("train", "toy.yaml", "--plain")
    wait_for(lambda: any((run.path / "phase.json").exists() for run in toy.sessions()), "a session in its phase")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 4
    assert toy.states() == ["stopped"]


@pytest.mark.slow
def test_a_session_by_hand_hears_the_second_ctrl_c_in_native_code(toy: Toy, start: Start, operant: Operant) -> None:
    toy.write(sessions=1, native_seconds=120, native_from=20)
    assert operant("train", "toy.yaml", "--until", "20").code == 0
    process = start("session", str(toy.sessions()[0].path))
    wait_for(lambda: toy.states() == ["running"], "a session training")
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 4


def test_a_session_that_waits_for_its_turn_is_not_started_after_ctrl_c(toy: Toy, start: Start) -> None:
    toy.write(frames=100_000, sessions=4, pause=0.02)
    process = start("train", "toy.yaml", "-s", "meta.threads=1000")
    wait_for(lambda: training(toy) == 1, "the first session training")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 4
    assert toy.states() == ["stopped", "new", "new", "new"]


def test_a_killed_session_is_named_with_its_signal(toy: Toy, start: Start) -> None:
    toy.write(frames=100_000, sessions=1, pause=0.02)
    process = start("train", "toy.yaml", "--json")
    wait_for(lambda: training(toy) == 1, "a session training")
    os.kill(json.loads((toy.sessions()[0].path / "lock").read_text())["pid"], signal.SIGKILL)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3
    (outcome,) = json.loads(out)["outcomes"]
    assert outcome["verdict"] == "failed"
    assert outcome["cause"].startswith("killed by SIGKILL")


def test_sessions_save_and_end_when_their_parent_is_killed(toy: Toy, start: Start) -> None:
    toy.write(frames=100_000, pause=0.02)
    process = start("train", "toy.yaml")
    wait_for(lambda: training(toy) == 2, "two sessions training")
    process.kill()
    wait_for(lambda: all(run.document["state"] == "stopped" for run in toy.sessions()), "both sessions stopped")


def test_resume_waits_for_the_session_of_a_launcher_whose_group_was_killed(toy: Toy, start: Start) -> None:
    toy.write(frames=100, sessions=1, pause=6.0, pause_from=50)
    launcher = start("train", "toy.yaml")
    wait_for(lambda: len(rows_of(toy)) == 6, "a session in an update of six seconds")
    orphan = pid_of(toy)
    os.killpg(launcher.pid, signal.SIGKILL)
    launcher.wait()
    assert lives(orphan)
    resumed = start("resume", "toy", "--until", "60", "--plain")
    out, err = resumed.communicate(timeout=PATIENCE)
    assert f"process {orphan} still saves, although the launcher that started it was killed; waiting" in out
    assert (resumed.returncode, err) == (0, "")
    assert [run.attempts for run in toy.sessions()] == [1]  # the orphan saved frame 60, and nothing was left to do


@pytest.mark.slow
def test_resume_ends_an_orphan_that_does_not_end(toy: Toy, start: Start) -> None:
    toy.write(frames=100, sessions=1, native_seconds=400, native_from=50)
    launcher = start("train", "toy.yaml")
    wait_for(lambda: len(rows_of(toy)) == 6, "a session that hears nothing")
    orphan = pid_of(toy)
    os.killpg(launcher.pid, signal.SIGKILL)
    launcher.wait()
    code = "import sys, operant.launch.parent_watch as o; o.ORPHAN_SECONDS = 3.0; from operant.cli.app import run;"
    process = subprocess.run(
        [sys.executable, "-c", f"{code} sys.exit(run(['resume', 'toy', '--until', '50', '--plain']))"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert f"process {orphan} was ended; it continues from its last checkpoint" in process.stdout
    assert process.returncode == 0
    assert not lives(orphan)


def test_resume_leaves_the_session_of_a_living_launcher_alone(toy: Toy, start: Start, operant: Operant) -> None:
    toy.write(frames=100_000, sessions=1, pause=0.05)
    start("train", "toy.yaml")
    wait_for(lambda: training(toy) == 1, "a session training")
    session = pid_of(toy)
    resumed = operant("resume", "toy")
    assert resumed.code == 3
    assert "this session is being trained right now" in resumed.err
    assert lives(session)
