"""Run directories as data: rows as columns, evaluations, episodes, provenance.

Reading never fails because a run is unfinished: files that are not there yet, keys that only some
rows have, nulls and a torn last line all read as "not known".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from operant.errors import UsageError
from operant.report.align import Curve, increasing
from operant.report.slm_metrics import ReturnSeries
from operant.report.stats import Floats
from operant.run import layout
from operant.run.metrics import read_rows
from operant.run.run import Run, Trial

TRAIN_RETURN, EVAL_SCORE, FINAL_SCORE = "train/return", "eval/score", "final/score"


@dataclass(frozen=True)
class Evaluation:
    """A mean greedy score at some point of training; `episodes` is None when the row does not say."""

    frames: int
    score: float
    low: float | None = None
    high: float | None = None
    episodes: int | None = None


@dataclass(frozen=True)
class SessionRecord:
    """One seed, as it stood when it was read."""

    path: Path
    name: str
    index: int
    seed: int
    state: str
    error: str | None
    attempts: int
    spec: dict[str, Any]
    parent: dict[str, Any] | None
    rows: list[dict[str, Any]]
    anchors: dict[str, float]
    provenance: dict[str, Any]

    @property
    def frames(self) -> int:
        """Frames of the newest row."""
        return int(self._newest("frames"))

    @property
    def seconds(self) -> float:
        """Seconds spent training, over all attempts."""
        return self._newest("seconds")

    def _newest(self, key: str) -> float:
        known = self.column(key)
        known = known[np.isfinite(known)]
        return float(known[-1]) if len(known) else 0.0

    def column(self, key: str) -> Floats:
        """The value of a key in every row; NaN where a row has none."""
        return np.array([_number(row.get(key)) for row in self.rows], dtype=np.float64)

    def metrics(self) -> list[str]:
        """Every key that some row has, in order of appearance."""
        return list(dict.fromkeys(key for row in self.rows for key in row))

    def curve(self, metric: str, x: str = "frames") -> Curve:
        """A metric over frames, seconds, updates or episodes, where it is known."""
        return increasing(self.column(x), self.column(metric))

    def returns(self) -> ReturnSeries:
        """The rows that carry a training return, for SLM-Lab's metrics."""
        known = np.isfinite(self.column(TRAIN_RETURN))
        return ReturnSeries(
            self.column("frames")[known], self.column("updates")[known], self.column(TRAIN_RETURN)[known]
        )

    def evaluations(self) -> list[Evaluation]:
        """The evaluations during training, oldest first."""
        return self._evaluations(EVAL_SCORE, self.spec.get("meta", {}).get("eval_episodes"))

    def final(self) -> Evaluation | None:
        """The evaluation at the end of the budget, once there is one."""
        return next(reversed(self._evaluations(FINAL_SCORE, None)), None)

    def _evaluations(self, key: str, episodes: int | None) -> list[Evaluation]:
        group = key.split("/")[0]
        return [
            Evaluation(
                frames=int(row.get("frames") or 0),
                score=float(row[key]),
                low=row.get(f"{group}/low"),
                high=row.get(f"{group}/high"),
                episodes=row.get(f"{group}/episodes", episodes),
            )
            for row in self.rows
            if isinstance(row.get(key), int | float)
        ]

    def episodes(self, split: str | None = None) -> list[dict[str, Any]]:
        """The episode rows, of one split ("train", "eval", "final") or all; read from disk at each call."""
        rows = read_rows(self.path / layout.EPISODES_FILE)
        return rows if split is None else [row for row in rows if row.get("split") == split]


@dataclass(frozen=True)
class TrialRecord:
    """One setting over its seeds."""

    path: Path
    sessions: tuple[SessionRecord, ...]

    @property
    def name(self) -> str:
        """The spec's name."""
        return self.sessions[0].name

    @property
    def spec(self) -> dict[str, Any]:
        """The resolved spec, the same for every session of a trial."""
        return self.sessions[0].spec

    @property
    def anchors(self) -> dict[str, float]:
        """Reference scores; where sessions measured the same one, their mean."""
        names = dict.fromkeys(name for session in self.sessions for name in session.anchors)
        return {name: float(np.mean([s.anchors[name] for s in self.sessions if name in s.anchors])) for name in names}

    def curves(self, metric: str, x: str = "frames") -> list[Curve]:
        """One curve per session, possibly empty."""
        return [session.curve(metric, x) for session in self.sessions]


def read_session(path: Path) -> SessionRecord:
    """The session in that directory; `UsageError` if it is not a run."""
    run = Run.open(Path(path))
    document = run.document
    attempts = int(document.get("attempts") or 0)
    return SessionRecord(
        path=run.path,
        name=run.name,
        index=run.index,
        seed=run.seed,
        state=run.state,
        error=document.get("error"),
        attempts=attempts,
        spec=run.spec,
        parent=run.parent,
        rows=read_rows(run.path / layout.METRICS_FILE),
        anchors=_anchors(run.path / layout.ANCHORS_FILE),
        provenance=_read_json(layout.provenance_path(run.path, attempts)),
    )


def read_trial(path: Path) -> TrialRecord:
    """The trial in that directory: a trial, a single session, or an experiment that has one trial."""
    path = Path(path)
    if (path / layout.RUN_FILE).is_file():
        return TrialRecord(path, (read_session(path),))
    if (path / layout.EXPERIMENT_FILE).is_file() or layout.trial_paths(path):
        return read_trial(_only_trial(path))
    sessions = [run.path for run in Trial(path).sessions()]
    if not sessions:
        raise UsageError(
            "there is no session in this directory",
            place=layout.shown(path),
            remedy="`operant runs` lists what there is",
        )
    return TrialRecord(path, tuple(read_session(session) for session in sessions))


def trials_of(path: Path) -> list[Path]:
    """The trial directories that a path stands for: all of an experiment's, or the path itself."""
    return layout.trial_paths(path) or [path]


def _only_trial(experiment: Path) -> Path:
    trials = layout.trial_paths(experiment)
    if len(trials) == 1:
        return trials[0]
    place = layout.shown(experiment)
    if not trials:
        raise UsageError(
            "this experiment has no trial yet", place=place, remedy="wait for its first session, or `operant runs`"
        )
    raise UsageError(
        f"this experiment has {len(trials)} trials: {trials[0].name} to {trials[-1].name}",
        place=place,
        remedy=f"name one, for example {layout.shown(trials[0])}",
    )


def _anchors(path: Path) -> dict[str, float]:
    return {name: float(value) for name, value in _read_json(path).items() if isinstance(value, int | float)}


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a file; empty while it is missing or half written."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")
