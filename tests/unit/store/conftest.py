"""Experiments without an engine: rows, episodes and checkpoints by the run's own writer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from operant.run.episode import Episode
from operant.run.layout import session_path, trial_path
from operant.run.progress import Progress
from operant.run.run import Run, create_experiment

SPEC: dict[str, Any] = {
    "name": "toy",
    "env": {"name": "Toy-v0", "max_frame": 100},
    "agent": {"algorithm": {"name": "ppo"}},
    "meta": {
        "max_session": 2,
        "log_frequency": 10,
        "eval_frequency": 10,
        "save_frequency": 10,
        "keep_checkpoints": 2,
        "threads": 1,
    },
}
Made = Callable[..., Path]


def advance(run: Run, frames: int, weights: bytes = b"") -> None:
    """Train a session up to `frames`, with a checkpoint at every tenth one."""
    with run.session(frames) as session:
        session.anchor("random", 0.0)
        start = session.latest.at.frames if session.latest else 0
        for reached in range(start + 10, frames + 1, 10):
            at = Progress(reached, reached, reached, 0, session.seconds())
            session.episode(Episode("Toy", "train", run.seed, at, float(reached), 1, "terminated"))
            session.log(at, {"eval/score": float(reached + run.seed)})
            session.due("save", at)
            session.save(at, lambda folder, n=reached: _write(folder, n, weights + bytes([run.seed])), float(reached))


def _write(folder: Path, frames: int, weights: bytes) -> None:
    (folder / "weights.bin").write_bytes(weights + str(frames).encode())
    (folder / "state.json").write_text(str(frames))


def sessions_of(experiment: Path) -> list[Run]:
    return [Run.open(session_path(trial_path(experiment, 0), index)) for index in range(2)]


@pytest.fixture
def make_run(tmp_path: Path) -> Made:
    """An experiment of two sessions, each trained for some frames."""

    def make(frames: int = 30, root: str = "runs", weights: bytes = b"", out: Path | None = None) -> Path:
        made = create_experiment(
            tmp_path / root, SPEC, source_text="name: toy\n", source_suffix=".yaml", command=["operant"], out=out
        )
        for index in range(2):
            path = session_path(trial_path(made.path, 0), index)
            run = Run.create(path, name="toy", spec=SPEC, seed=index, session=index, threads=1)
            if frames:
                advance(run, frames, weights)
        return made.path

    return make
