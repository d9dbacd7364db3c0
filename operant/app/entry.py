"""One run as a row of the list: what it is, how far it came, what it scored."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from operant.errors import OperantError
from operant.report.read import EVAL_SCORE, FINAL_SCORE
from operant.report.stats import Estimate
from operant.report.summary import overall_state
from operant.report.tail import newest_values
from operant.run import layout
from operant.run.documents import read_document
from operant.run.run import Run

TAGS_FILE = "tags.json"
RECORD, UNREADABLE = "record", "unreadable"
KEYS = ("frames", "seconds", "tokens", FINAL_SCORE, EVAL_SCORE)


@dataclass
class Entry:
    """A run in the list. `scores` are those of the best trial's seeds; `score` their mean with its interval.

    `rows` says whether there is anything to draw, `episodes` how many bytes of them there are. The state of episodes
    that no training left is "record".
    """

    id: str
    name: str
    stamp: str
    state: str
    created: str | None = None
    algorithm: str | None = None
    env: str | None = None
    trials: int = 0
    sessions: int = 0
    sessions_done: int = 0
    frames: int = 0
    max_frame: int = 0
    seconds: float = 0.0
    tokens: int = 0
    scores: list[float] = field(default_factory=list)
    score_is_final: bool = False
    rows: bool = False
    episodes: int = 0
    search: bool = False
    tags: list[str] = field(default_factory=list)
    archived: bool = False
    error: str | None = None
    score: Estimate | None = field(default=None, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """The row for the page."""
        score = None if self.score is None else {**self.score.as_dict(), "text": self.score.text()}
        return {**{key: value for key, value in vars(self).items() if key != "scores"}, "score": score}


def signature(path: Path) -> tuple[object, ...]:
    """Sizes and times of the files that a row is made of."""
    found: list[object] = []
    for name in (layout.EXPERIMENT_FILE, layout.SEARCH_FILE, TAGS_FILE):
        found.append(_stat(path / name))
    found.append(_size(path if path.is_file() else path / layout.EPISODES_FILE))
    for session in _sessions(path):
        found += [session.name, *(_stat(session / name) for name in (layout.RUN_FILE, layout.METRICS_FILE))]
        found.append(_size(session / layout.EPISODES_FILE))
    return tuple(found)


def read_entry(path: Path, name: str) -> Entry:
    """The row of a run, an experiment, or a record; a row that says why where it cannot be read."""
    try:
        return _read(path, name)
    except (OperantError, OSError, ValueError, TypeError, KeyError, AttributeError) as problem:
        cause = problem.cause if isinstance(problem, OperantError) else f"{type(problem).__name__}: {problem}"
        return Entry(name, path.parent.name, path.name, UNREADABLE, error=cause)


def _read(path: Path, name: str) -> Entry:
    sessions = _sessions(path)
    if not sessions and not (path / layout.EXPERIMENT_FILE).is_file():
        return Entry(
            name,
            path.name,
            "",
            RECORD,
            created=_modified(path),
            episodes=_size(path if path.is_file() else path / layout.EPISODES_FILE),
        )
    document = _document(path / layout.EXPERIMENT_FILE)
    runs = [(session, read_document(session, layout.RUN_FILE)) for session in sessions]
    spec = _document(path / layout.RESOLVED_FILE) or (runs[0][1]["spec"] if runs else {})
    newest = [newest_values(os.fspath(session / layout.METRICS_FILE), KEYS) for session in sessions]
    states = [_state(session, run) for session, run in runs]
    scores, is_final = _best_scores(sessions, newest)
    search = _document(path / layout.SEARCH_FILE)
    tags = _document(path / TAGS_FILE)
    state = overall_state(states)
    errors = [run["error"] for _, run in runs if run.get("error")]
    expected = int(spec.get("meta", {}).get("max_session", 1)) if document and not search else 0
    return Entry(
        id=name,
        name=str(document.get("spec") or (runs[0][1]["name"] if runs else path.name)),
        stamp=path.name if document else "",
        state="done" if search.get("state") == "done" and state == "stopped" else state,
        created=document.get("created") or (runs[0][1].get("created") if runs else None),
        algorithm=spec.get("agent", {}).get("algorithm", {}).get("name"),
        env=spec.get("env", {}).get("name"),
        trials=len({session.parent for session in sessions}),
        sessions=max(len(sessions), expected),
        sessions_done=states.count("done"),
        frames=sum(int(row.get("frames", 0)) for row in newest),
        max_frame=int(spec.get("env", {}).get("max_frame") or 0) * max(len(sessions), expected),
        seconds=sum(float(row.get("seconds", 0.0)) for row in newest),
        tokens=sum(int(row.get("tokens", 0)) for row in newest),
        scores=scores,
        score_is_final=is_final,
        rows=any(newest),
        episodes=sum(_size(session / layout.EPISODES_FILE) for session in sessions),
        search=bool(search),
        tags=[str(tag) for tag in tags.get("tags") or []],
        archived=bool(tags.get("archived")),
        error=errors[0] if errors else None,
    )


def _sessions(path: Path) -> list[Path]:
    """The sessions of an experiment, of a trial, or the one that the path is."""
    if (path / layout.RUN_FILE).is_file():
        return [path]
    trials = layout.trial_paths(path) or [path]
    return [session for trial in trials for session in layout.session_paths(trial)]


def _state(session: Path, run: dict[str, Any]) -> str:
    """The state in the file, but of one that says it runs, whether its process does."""
    return Run.open(session).state if run["state"] == "running" else run["state"]


def _best_scores(sessions: list[Path], newest: list[dict[str, Any]]) -> tuple[list[float], bool]:
    """The final scores of the best trial's seeds; last evaluations where no trial has a final one."""
    for key in (FINAL_SCORE, EVAL_SCORE):
        trials: dict[Path, list[float]] = {}
        for session, row in zip(sessions, newest, strict=True):
            if key in row:
                trials.setdefault(session.parent, []).append(float(row[key]))
        if trials:
            return max(trials.values(), key=lambda scores: sum(scores) / len(scores)), key == FINAL_SCORE
    return [], False


def _document(file: Path) -> dict[str, Any]:
    """The object in a file; empty while it is missing or half written."""
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _stat(file: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _size(file: Path) -> int:
    found = _stat(file)
    return found[1] if found else 0


def _modified(path: Path) -> str | None:
    from datetime import UTC, datetime

    found = _stat(path)
    return datetime.fromtimestamp(found[0] / 1e9, UTC).isoformat() if found else None
