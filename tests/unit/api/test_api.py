"""The public API as a script would use it: real runs of the cheapest algorithm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import operant
from operant.api.events import CheckpointSaved, EpisodeEnded, Row, StateChanged
from operant.errors import RunError, SpecError, UsageError
from operant.run.layout import LOCK_FILE
from operant.run.lock import holder_of

SPEC: dict[str, Any] = {
    "name": "tiny",
    "env": {"name": "CartPole-v1", "num_envs": 2, "max_frame": 400},
    "agent": {"algorithm": {"name": "random"}},
    "meta": {
        "max_session": 2,
        "log_frequency": 100,
        "eval_frequency": 200,
        "save_frequency": 200,
        "eval_episodes": 2,
        "final_episodes": 3,
    },
}
LONG: dict[str, Any] = {"env.max_frame": 100_000_000, "meta.log_frequency": 1000, "meta.save_frequency": 100_000_000}


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> operant.Trial:
    return operant.train(SPEC, root=tmp_path_factory.mktemp("runs"))


def test_train_returns_the_trial_with_its_score(trial: operant.Trial):
    assert trial.state == "done"
    assert trial.name == "tiny"
    assert [session.seed for session in trial.sessions] == [0, 1]
    assert trial.score is not None
    assert trial.score.low is not None
    assert trial.score.high is not None
    assert trial.score.low <= trial.score.point <= trial.score.high
    scores = [episode.score for episode in trial.episodes("final")]
    assert trial.score.point == pytest.approx(sum(score or 0.0 for score in scores) / len(scores))


def test_metrics_are_columns_of_numpy(trial: operant.Trial):
    session = trial.sessions[0]
    columns = session.metrics("train/return")
    assert list(columns) == ["frames", "train/return"]
    assert np.array_equal(columns["frames"], [100, 200, 300, 400])
    assert np.isfinite(columns["train/return"]).all()
    assert set(columns) < set(session.metrics())
    both = trial.metrics("train/return")
    assert np.array_equal(both["seed"], [0] * 4 + [1] * 4)
    frame = both.frame()
    assert list(frame.columns) == ["seed", "frames", "train/return"]


def test_a_metric_that_no_row_has_is_named_with_the_nearest(trial: operant.Trial):
    with pytest.raises(UsageError, match=r"train/retrun.*did you mean train/return"):
        trial.metrics("train/retrun")


def test_checkpoints_and_episodes(trial: operant.Trial):
    session = trial.sessions[1]
    assert [saved.at.frames for saved in session.checkpoints()][-1] == 400
    assert session.checkpoint(400).at.frames == session.checkpoint("latest").at.frames == 400
    with pytest.raises(UsageError, match="there is no checkpoint at '7'"):
        session.checkpoint(7)
    assert {episode.split for episode in session.episodes()} == {"train", "eval", "final"}


def test_open_finds_what_was_trained(trial: operant.Trial):
    root = trial.path.parent.parent.parent
    assert operant.open("tiny", root) == operant.Trial(trial.path.resolve())
    assert operant.open(trial.path / "session_1") == operant.Session((trial.path / "session_1").resolve())
    assert [each.path for each in operant.list_runs(root)] == [trial.path]
    with pytest.raises(UsageError, match=r"no run 'tinny'.*did you mean tiny"):
        operant.open("tinny", root)


def test_evaluate_and_compare(trial: operant.Trial):
    found = operant.evaluate(trial, episodes=2, seed=5_000_000)
    assert [len(each.episodes) for each in found.sessions] == [2, 2]
    again = operant.evaluate(trial, episodes=2, seed=5_000_000)
    assert found.score == again.score
    assert operant.compare(trial, trial).a.path == operant.compare(trial, trial).b.path


@pytest.mark.parametrize(
    ("settings", "path", "value"),
    [
        ({"max_frame": 300}, "env.max_frame", 300),
        ({"env": {"num_envs": 1}}, "env.num_envs", 1),
        ({"meta.eval_episodes": np.int64(4)}, "meta.eval_episodes", 4),
        ({"agent": {"algorithm": {"gamma": 0.5, "name": "ppo"}}}, "agent.algorithm.gamma", 0.5),
    ],
)
def test_settings_by_name_section_and_path(settings: dict[str, Any], path: str, value: float):
    spec = operant.load_spec(SPEC, **settings)
    found: Any = spec
    for part in path.split("."):
        found = getattr(found, part)
    assert found == value
    assert operant.load_spec(spec) == spec


def test_a_setting_that_is_wrong_is_refused_before_anything_is_written(tmp_path: Path):
    with pytest.raises(SpecError, match="max_fame"):
        operant.train(SPEC, root=tmp_path, max_fame=3)
    with pytest.raises(UsageError, match=r"start is the name of 3 settings: .*epsilon.start, .*beta.start"):
        operant.train("ddqn_per_cartpole", root=tmp_path, start=0.5)
    assert list(tmp_path.iterdir()) == []


def test_start_gives_rows_as_they_come_and_stops_when_asked(tmp_path: Path):
    handle = operant.start(SPEC, root=tmp_path, sessions=1, **LONG)
    seen = []
    for row in handle.rows():
        seen.append(row["frames"])
        if len(seen) == 3:
            handle.save()
        if len(seen) == 30:
            handle.stop()
    trial = handle.wait()
    assert trial.state == "stopped"
    assert seen == sorted(seen)
    frames = [saved.at.frames for saved in trial.checkpoints()]
    assert len(frames) == 2, "one that was asked for, one at the stop"
    assert trial.sessions[0].frames <= frames[-1]
    further = operant.resume(trial, until=frames[-1] + 5000)
    assert further.checkpoints()[-1].at.frames >= frames[-1] + 5000


def test_an_observer_from_outside_may_ask_for_a_stop(tmp_path: Path):
    handle = operant.start(SPEC, root=tmp_path, sessions=1, **LONG)
    while not handle.trial.sessions[0].path.joinpath("metrics.jsonl").exists():
        time.sleep(0.05)
    observer = operant.observe(handle.trial)
    events = []
    for event in observer:
        events.append(event)
        if isinstance(event, Row):
            observer.stop()
    assert handle.wait().state == "stopped"
    kinds = {type(event) for event in events}
    assert kinds >= {Row, EpisodeEnded, CheckpointSaved, StateChanged}


def test_a_failed_session_raises_with_its_cause(tmp_path: Path):
    handle = operant.start(SPEC, root=tmp_path, sessions=1, **LONG)
    next(iter(handle.rows()))
    holder = holder_of(handle.runs[0].path / LOCK_FILE)
    assert holder is not None
    os.kill(holder.pid, signal.SIGKILL)
    with pytest.raises(RunError, match="killed by SIGKILL"):
        handle.wait()


def test_importing_operant_loads_nothing_heavy():
    code = "import sys, operant; print([m for m in ('numpy', 'torch', 'pydantic', 'typer') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_a_fork_names_its_parent(trial: operant.Trial, tmp_path: Path):
    fork = operant.resume(trial, root=tmp_path, max_frame=600)
    assert fork.path != trial.path
    assert fork.state == "done"
    parent = fork.sessions[0].run.parent
    assert parent is not None
    assert parent["frames"] == 400
