"""Run directories made of plain files, as the run room's contract describes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

SPEC: dict[str, Any] = {
    "name": "ppo_cartpole",
    "env": {"name": "CartPole-v1", "num_envs": 4, "max_frame": 1000},
    "agent": {"algorithm": {"name": "ppo"}},
    "meta": {"max_session": 2, "eval_episodes": 10, "final_episodes": 100},
}


@dataclass(frozen=True)
class Files:
    """What to write for one session; `torn` is a last line without its end."""

    returns: Sequence[float | None] = (20.0, 100.0, 200.0, 400.0)
    evals: dict[int, float] = field(default_factory=lambda: {500: 150.0, 1000: 450.0})
    final: float | None = 480.0
    seed: int = 0
    state: str = "done"
    error: str | None = None
    attempts: int = 1
    anchors: dict[str, float] | None = field(default_factory=lambda: {"random": 20.0})
    episodes: Sequence[dict[str, Any]] = ()
    parts: dict[str, float] = field(default_factory=dict)
    torn: str = ""

    def rows(self) -> list[dict[str, Any]]:
        """Rows spread evenly over 1000 frames, evaluations at their frames, the final evaluation last."""
        rows: list[dict[str, Any]] = []
        for number, value in enumerate(self.returns, start=1):
            frames = 1000 * number // len(self.returns)
            at = {"frames": frames, "updates": number - 1, "episodes": number * 3, "tokens": 0, "seconds": number / 2}
            rows.append({**at, "train/return": value, "perf/frames_per_second": 500.0})
            if frames in self.evals:
                rows.append({**at, "eval/score": self.evals[frames]})
        if self.final is not None:
            at = {"frames": 1000, "updates": len(self.returns), "episodes": 99, "tokens": 0, "seconds": 3.0}
            ends = {"final/low": self.final - 5, "final/high": self.final + 5, "final/episodes": 100}
            parts = {f"final/{name}": value for name, value in self.parts.items()}
            rows.append({**at, "final/score": self.final, **ends, **parts})
        return rows


def _lines(rows: Sequence[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _write_session(path: Path, index: int = 0, spec: dict[str, Any] = SPEC, **settings: Any) -> Path:
    files = Files(**settings)
    path.mkdir(parents=True)
    document = {
        "format": 1,
        "name": spec["name"],
        "seed": files.seed,
        "session": index,
        "spec": spec,
        "threads": 1,
        "state": files.state,
        "error": files.error,
        "attempts": files.attempts,
        "parent": None,
        "created": "2025-01-01T00:00:00+00:00",
        "updated": "2025-01-01T00:00:10+00:00",
    }
    (path / "run.json").write_text(json.dumps(document))
    (path / "metrics.jsonl").write_text(_lines(files.rows()) + files.torn)
    (path / "episodes.jsonl").write_text(_lines(files.episodes))
    if files.anchors is not None:
        (path / "anchors.json").write_text(json.dumps(files.anchors))
    git = [{"of": "working directory", "sha": "1a2b3c4d5e6f", "branch": "main", "dirty": False, "untracked": []}]
    (path / "provenance").mkdir()
    (path / "provenance" / f"attempt_{files.attempts:03d}.json").write_text(json.dumps({"git": git}))
    return path


@pytest.fixture
def write_session() -> Callable[..., Path]:
    """`write_session(path, index=0, spec=..., **settings of Files)` writes one session directory."""
    return _write_session


@pytest.fixture
def make_trial(tmp_path: Path) -> Callable[..., Path]:
    """`make_trial({settings}, {settings}, ..., stamp=, spec=, trial=)` writes a trial in its experiment."""

    def make(
        *sessions: dict[str, Any], stamp: str = "20250101-000000", spec: dict[str, Any] = SPEC, trial: int = 0
    ) -> Path:
        experiment = tmp_path / "runs" / spec["name"] / stamp
        experiment.mkdir(parents=True, exist_ok=True)
        created = f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T00:00:00+00:00"
        document = {"format": 1, "spec": spec["name"], "created": created, "parent": None, "command": []}
        (experiment / "experiment.json").write_text(json.dumps(document))
        (experiment / "resolved.json").write_text(json.dumps(spec))
        path = experiment / f"trial_{trial:03d}"
        path.mkdir()
        for index, settings in enumerate(sessions):
            _write_session(path / f"session_{index}", index, spec, **settings)
        return path

    return make


@pytest.fixture
def spec() -> dict[str, Any]:
    """The resolved spec of the synthetic runs, free to change."""
    return json.loads(json.dumps(SPEC))
