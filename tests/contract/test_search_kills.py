"""A search that is killed goes on as if it had not been: same trials, same promotions, same bytes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from operant.run.layout import METRICS_FILE
from operant.run.metrics import read_last_row
from operant.run.records import Records, difference
from tests.contract.searches import (
    assert_same_curves,
    decisions,
    finish,
    frames_not_saved,
    kill,
    outcome,
    sessions,
    start,
    wait_for_orphans,
    write_spec,
)

KILLS = 10


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_ten_kills_change_nothing(tmp_path: Path) -> None:
    spec = write_spec(tmp_path, trials=16, grace=1024, frames=16384)
    keep = ("-s", "meta.search_keep=16", "--workers", "2")
    finish(start(spec, "--out", tmp_path / "whole", *keep))
    trained = sum(frames for *_, frames in _frames(tmp_path / "whole"))
    killed, rng, lost, kills = tmp_path / "killed", Random(7), 0, 0
    while kills < KILLS:
        process = start(spec, "--out", killed, *keep)
        goal = trained * (kills + rng.uniform(0.5, 1)) / (KILLS + 1)
        while _frames_in_rows(killed) < goal:
            assert process.poll() is None, "the search was over before it could be killed often enough"
            time.sleep(0.01)
        kill(process)
        kills += 1
        wait_for_orphans(killed)
        lost += frames_not_saved(killed)
    finish(start(spec, "--out", killed, *keep))
    assert decisions(killed) == decisions(tmp_path / "whole")
    assert outcome(killed) == outcome(tmp_path / "whole")
    assert_same_curves(tmp_path / "whole", killed)
    assert lost <= 0.02 * trained


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_killed_population_has_the_same_forks_and_bytes(tmp_path: Path) -> None:
    """Killed the moment that a trial or a fork appears, when its checkpoint may not be there yet, and a while later."""
    spec = write_spec(tmp_path, trials=4, grace=1024, frames=4096, scheduler="pbt")
    words = ("-s", "meta.search_keep=100", "-s", "meta.keep_checkpoints=1", "--workers", "2")
    finish(start(spec, "--out", tmp_path / "whole", *words))
    assert _count_trials(tmp_path / "whole") == 7
    killed = tmp_path / "killed"
    for trials, seconds in ((1, 0.3), (5, 0.0), (5, 0.5), (6, 0.0), (7, 0.4)):
        process = start(spec, "--out", killed, *words)
        while _count_trials(killed) < trials:
            assert process.poll() is None
            time.sleep(0.002)
        time.sleep(seconds)
        kill(process)
        wait_for_orphans(killed)
    finish(start(spec, "--out", killed, *words))
    assert decisions(killed) == decisions(tmp_path / "whole")
    assert outcome(killed) == outcome(tmp_path / "whole")
    assert_same_curves(tmp_path / "whole", killed)
    assert not any(killed.rglob("held")), "a checkpoint is still kept for forks that have long begun"


def _count_trials(place: Path) -> int:
    return len(list(place.glob("trial_*")))


def _frames_in_rows(place: Path) -> int:
    """Frames trained so far, saved or not."""
    return sum(read_last_row(run.path / METRICS_FILE).get("frames", 0) for run in sessions(place))


def _frames(place: Path) -> list[tuple[Path, int]]:
    from operant.run.checkpoint import list_checkpoints

    return [(run.path, list_checkpoints(run.checkpoints)[-1].at.frames) for run in sessions(place)]


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_killed_session_and_a_killed_server_are_started_again(tmp_path: Path) -> None:
    spec = write_spec(tmp_path, trials=3, grace=2048, frames=8192)
    finish(start(spec, "--out", tmp_path / "whole", "--workers", "1"))
    process = start(spec, "--out", tmp_path / "killed", "--workers", "1")
    for victim in ("session", "fork-server"):
        pid = _await_process(tmp_path / "killed", victim)
        os.kill(pid, signal.SIGKILL)
        time.sleep(2)
    said = finish(process)
    assert "was killed; it continues" in said
    assert decisions(tmp_path / "killed") == decisions(tmp_path / "whole")
    assert_same_curves(tmp_path / "whole", tmp_path / "killed")


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_promoted_trial_has_the_bytes_of_one_that_was_trained_in_one_go(tmp_path: Path) -> None:
    spec = write_spec(tmp_path, trials=4, grace=512, frames=2048)
    finish(start(spec, "--out", tmp_path / "search", "--workers", "1"))
    (promoted,) = [run for run in sessions(tmp_path / "search") if run.attempts == 2]
    words = ["train", promoted.path.parent / "resolved.json", "--out", tmp_path / "alone", "--plain"]
    subprocess.run([sys.executable, "-m", "operant", *map(str, words)], check=True, capture_output=True)
    (alone,) = sessions(tmp_path / "alone")
    assert difference(Records.of(promoted), Records.of(alone)) is None


def _await_process(place: Path, what: str) -> int:
    """The process that trains a session of the search, or the server that it was forked from."""
    from operant.run.lock import holder_of

    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for run in sessions(place):
            holder = holder_of(run.path / "lock")
            if holder is not None and holder.launcher is not None:
                return holder.pid if what == "session" else holder.launcher
        time.sleep(0.05)
    raise AssertionError("no session ran")
