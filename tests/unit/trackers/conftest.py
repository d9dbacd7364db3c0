"""Sessions that are written as an engine writes them, without training."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from operant.run.episode import Episode, Turn
from operant.run.layout import METRICS_FILE, session_path, trial_path
from operant.run.progress import Progress
from operant.run.run import Run
from operant.run.session import Session

META = {"log_frequency": 100, "eval_frequency": 100, "save_frequency": 300, "keep_checkpoints": 9}
SPEC: dict[str, Any] = {"name": "ppo", "env": {"max_frame": 2000}, "agent": {"algorithm": {"name": "ppo"}}}
MakeRun = Callable[..., Run]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """A new session directory; of several, each has its index."""

    def make(index: int = 0) -> Run:
        place = session_path(trial_path(tmp_path / "runs" / "ppo" / "20260101-000000", 0), index)
        spec = {**SPEC, "meta": META}
        return Run.create(place, name="ppo", spec=spec, seed=index, session=index, threads=1)

    return make


def write(run: Run, last: int, scale: float = 1.0) -> None:
    """Train to frame `last`: a row every 100 frames, a checkpoint every 300, the final evaluation at 2000."""
    with run.session(last) as session:
        frames = session.latest.at.frames if session.latest else 0
        while frames < last:
            frames += 100
            write_row(session, frames, scale)
        if frames >= 2000:
            at = Progress(frames, frames // 100, frames // 10, 0, frames / 50 + 1)
            session.episode(Episode("CartPole-v1", "final", 7, at, 9.0, 9, "terminated"))
            session.log(at, {"final/score": 9.0 * scale})


def write_row(session: Session, frames: int, scale: float = 1.0) -> None:
    at = Progress(frames, frames // 100, frames // 10, 0, frames / 50 * scale)
    turns = (Turn("user", "2+2?"), Turn("assistant", "4 | four\nor 5"))
    for split in ("train", "eval"):
        session.episode(Episode("CartPole-v1", split, 1, at, frames / 3, 12, "terminated", turns=turns))
    session.log(at, {"train/return": frames / 7 * scale, "loss/value": 1.0 / frames, "lost": float("nan")})
    if session.due("save", at):
        session.save(at, lambda folder: (folder / "weights").write_text(str(frames)))


def killed_at(work: Callable[[], object]) -> None:
    """Do the work in a child that ends by SIGKILL, which no code of it sees."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def curves(run: Run) -> dict[str, list[tuple[int, float]]]:
    """What metrics.jsonl has of each key: at a frame the first number that it got there."""
    found: dict[str, dict[int, float]] = {}
    for line in (run.path / METRICS_FILE).read_text().splitlines():
        row = json.loads(line)
        for key, value in row.items():
            if value is not None:
                found.setdefault(key, {}).setdefault(row["frames"], value)
    return {key: sorted(points.items()) for key, points in found.items()}
