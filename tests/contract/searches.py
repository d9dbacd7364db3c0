"""Searches as a user runs them: processes on a folder, killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from operant.hpo.jobs import Jobs
from operant.hpo.storage import database_url
from operant.hpo.study import open_study
from operant.report.search_table import search_rows
from operant.run.layout import METRICS_FILE, checkpoint_paths
from operant.run.lock import is_held
from operant.run.metrics import read_last_row
from operant.run.records import Records, difference
from operant.run.run import Run, find_sessions

SPEC = """
searched:
  env: {{name: CartPole-v1, num_envs: 4, max_frame: {frames}}}
  agent:
    algorithm: {{name: ppo, time_horizon: 32, minibatch_size: 128, training_epoch: 2}}
    net: {{hidden: [16]}}
  meta:
    max_session: 1
    max_trial: {trials}
    log_frequency: 128
    eval_frequency: {grace}
    save_frequency: 128
    eval_episodes: 2
    final_episodes: 2
    search_scheduler: {{name: {scheduler}, grace_period: {grace}, reduction_factor: 4}}
  search:
    agent.algorithm.gamma__uniform: [0.9, 0.999]
    agent.net.optimizer.lr__loguniform: [1e-4, 1e-2]
"""


def write_spec(folder: Path, *, trials: int = 6, grace: int = 512, frames: int = 2048, scheduler: str = "asha") -> Path:
    file = folder / "searched.yaml"
    file.write_text(SPEC.format(trials=trials, grace=grace, frames=frames, scheduler=scheduler))
    return file


def start(*words: str | Path, **environment: str) -> subprocess.Popen[str]:
    """`operant search` in a process group of its own."""
    argv = [sys.executable, "-m", "operant", "search", *map(str, words)]
    return subprocess.Popen(
        argv,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, **environment},
    )


def finish(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=900)
    assert process.returncode == 0, said
    return said


def kill(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def wait_for_orphans(place: Path) -> None:
    """Sessions whose search was killed save and end by themselves."""
    deadline = time.monotonic() + 60
    while any(is_held(run.path / "lock") for run in sessions(place)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def sessions(place: Path) -> list[Run]:
    if not any(place.glob("trial_*/session_*/run.json")):
        return []
    return find_sessions(place)


def frames_not_saved(place: Path) -> int:
    """Frames that are in the rows of a killed search and that its resume has to train again."""
    lost = 0
    for run in sessions(place):
        saved = checkpoint_paths(run.checkpoints)
        last = read_last_row(run.path / METRICS_FILE).get("frames", 0)
        lost += max(0, last - (int(saved[-1].name) if saved else 0))
    return lost


def outcome(place: Path) -> list[tuple]:
    """Trials, settings, rungs and scores."""
    return [(row.trial, tuple(row.settings.values()), row.rung, row.score) for row in search_rows(place)]


def decisions(place: Path) -> list[tuple]:
    """The table of jobs: who was trained how far, with which settings and scores."""
    jobs = Jobs(database_url(place, None), open_study(place).name)
    return [(job.number, job.trial, job.rung, job.settings, job.scores) for job in jobs.all()]


def assert_same_curves(first: Path, second: Path) -> None:
    for mine, theirs in zip(sessions(first), sessions(second), strict=True):
        assert difference(Records.of(mine), Records.of(theirs)) is None, mine.path
