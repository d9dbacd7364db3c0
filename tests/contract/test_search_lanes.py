"""Trials of a search that share a process: each is what it would be alone, and kills change nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from operant.run.layout import METRICS_FILE, session_path, trial_path
from operant.run.lock import holder_of
from operant.run.records import Records, difference
from operant.run.run import Run
from tests.contract.searches import (
    assert_same_curves,
    decisions,
    finish,
    kill,
    outcome,
    sessions,
    start,
    wait_for_orphans,
)
from tests.warm import WarmProcess

pytest.importorskip("jax")

SPEC = """
searched:
  engine: jax
  env: {{name: CartPole-v1, num_envs: 8, max_frame: {frames}}}
  agent:
    algorithm: {{name: ppo, time_horizon: 32, minibatch_size: 128, training_epoch: 2}}
    net: {{hidden: [16]}}
  meta:
    max_session: {sessions}
    max_trial: 8
    log_frequency: 512
    eval_frequency: 4096
    save_frequency: 2048
    eval_episodes: 2
    final_episodes: 2
    device: cpu
    search_keep: 8
    {search}
    search_resources: {{cpu: 64, lanes: 8}}
  search:
"""
# One of the learning rates diverges; the widths of the network are two programs.
GRID = """    agent.algorithm.gamma__choice: [0.9, 0.99]
    agent.net.optimizer.lr__choice: [1.0e-3, 10.0]
    agent.net.hidden__choice: [[16], [8]]
"""
RANDOM = """    agent.algorithm.gamma__uniform: [0.9, 0.999]
    agent.net.optimizer.lr__loguniform: [1e-4, 1e-2]
"""


def _write(folder: Path, space: str, search: str, frames: int, sessions: int = 1) -> Path:
    file = folder / "searched.yaml"
    file.write_text(SPEC.format(frames=frames, search=search, sessions=sessions) + space)
    return file


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_trials_of_one_process_are_those_of_separate_runs(tmp_path: Path) -> None:
    finish(start(_write(tmp_path, GRID, "search_sampler: grid", 8192), "--out", tmp_path / "search"))
    together = sessions(tmp_path / "search")
    assert sorted(_trials_of_process(run) for run in together) == [4] * 8
    alone = [_train_alone(run, tmp_path / "alone" / run.path.parent.name) for run in together]
    assert [difference(*map(Records.of, pair)) for pair in zip(together, alone, strict=True)] == [None] * 8
    assert len({Records.of(run).metrics[-1]["final/score"] for run in together}) > 1


def _trials_of_process(run: Run) -> int:
    (facts,) = (run.path / "provenance").glob("*.json")
    return sum("trial_" in word for word in json.loads(facts.read_text())["command"])


def _train_alone(run: Run, folder: Path) -> Run:
    alone = Run.create(folder, name=run.name, spec=run.spec, seed=run.seed, session=run.index, threads=run.threads)
    argv = [sys.executable, "-m", "operant", "session", str(alone.path)]
    process = WarmProcess(argv, folder / "errors.txt")
    errors = process.communicate(timeout=240)[1]
    assert process.returncode == 0, errors.decode()
    return alone


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_kills_change_nothing(tmp_path: Path) -> None:
    scheduler = "search_scheduler: {grace_period: 8192, reduction_factor: 2}"
    spec = _write(tmp_path, RANDOM, scheduler, 32768, sessions=2)
    finish(start(spec, "--out", tmp_path / "whole"))
    killed = tmp_path / "killed"
    for trial, rows in ((0, 3), (5, 5), (3, 12)):
        process = start(spec, "--out", killed)
        _await_rows(process, killed, trial, rows)
        kill(process)
        wait_for_orphans(killed)
    process = start(spec, "--out", killed)
    _kill_session(process, killed)
    finish(process)
    assert decisions(killed) == decisions(tmp_path / "whole")
    assert outcome(killed) == outcome(tmp_path / "whole")
    assert_same_curves(tmp_path / "whole", killed)


def _rows(place: Path, trial: int) -> int:
    file = session_path(trial_path(place, trial), 0) / METRICS_FILE
    return file.read_bytes().count(b"\n") if file.exists() else 0


def _await(process: subprocess.Popen[str], happened: Callable[[], bool]) -> None:
    while not happened():
        assert process.poll() is None, "the search was over before it could be killed: make it longer"
        time.sleep(0.005)


def _await_rows(process: subprocess.Popen[str], place: Path, trial: int, rows: int) -> None:
    _await(process, lambda: _rows(place, trial) >= rows)


def _kill_session(process: subprocess.Popen[str], place: Path) -> None:
    """SIGKILL of the process that trains, while the search lives."""
    found: list[int] = []

    def trains() -> bool:
        holders = [holder_of(run.path / "lock") for run in sessions(place)]
        found[:] = [holder.pid for holder in holders if holder is not None]
        return bool(found)

    _await(process, trains)
    os.kill(found[0], signal.SIGKILL)
