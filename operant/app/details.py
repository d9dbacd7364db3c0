"""What the page shows of one run beside its curves: sessions, settings, alerts, and a small curve for the list."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from operant.app.index import Index
from operant.app.lines import AXES, flat, lead_trial, spec_of
from operant.errors import OperantError
from operant.report.formatting import duration
from operant.report.read import EVAL_SCORE, FINAL_SCORE, TRAIN_RETURN
from operant.report.tail import newest_values
from operant.run.inventory import faults
from operant.run.layout import EVENTS_FILE, METRICS_FILE, provenance_path, session_paths, shown, trial_paths
from operant.run.phase import read_phase
from operant.run.run import Run

SPARK_POINTS = 28
MOST_SESSIONS = 200
MOST_ALERTS = 100
LAST_KEYS = ("frames", "seconds", TRAIN_RETURN, EVAL_SCORE, FINAL_SCORE)


def run_details(index: Index, name: str) -> dict[str, Any]:
    """A run's sessions, settings, alerts, faults of its files, and where it came from."""
    path = index.path_of(name)
    sessions = _sessions(path)
    return {
        "row": index.entry_of(name).as_dict(),
        "place": shown(path),
        "sessions": [_session(path, session) for session in sessions[:MOST_SESSIONS]],
        "more_sessions": max(0, len(sessions) - MOST_SESSIONS),
        "settings": flat(spec_of(lead_trial(path) or path)),
        "alerts": alerts(path),
        "faults": [str(fault) for fault in faults(path) if fault.harms_resume] if sessions else [],
        "provenance": _provenance(sessions),
    }


def alerts(path: Path) -> list[dict[str, Any]]:
    """What sessions reported of themselves, newest first; `at` is how far they had come, as far as the row says."""
    found = [
        {
            "session": session.relative_to(path).as_posix() if session != path else session.name,
            "kind": str(row.get("kind", "")),
            "message": str(row.get("message", "")),
            "time": str(row.get("time", "")),
            "at": {axis: row[axis] for axis in AXES if isinstance(row.get(axis), int | float)},
        }
        for session in _sessions(path)
        for row in _rows(session / EVENTS_FILE)
    ]
    return sorted(found, key=lambda row: row["time"], reverse=True)[:MOST_ALERTS]


def spark(index: Index, name: str) -> list[float]:
    """A few values of the first seed's curve, each from one row: a large file costs no more than a small one."""
    trial = lead_trial(index.path_of(name))
    sessions = [] if trial is None else session_paths(trial) or [trial]
    return _sampled(sessions[0] / METRICS_FILE) if sessions else []


def _sampled(file: Path) -> list[float]:
    try:
        with file.open("rb") as opened:
            size = file.stat().st_size
            lines: dict[int, bytes] = {}
            for number in range(SPARK_POINTS):
                opened.seek(size * number // SPARK_POINTS)
                if number:
                    opened.readline()
                lines.setdefault(opened.tell(), opened.readline())
    except OSError:
        return []
    rows = [row for line in lines.values() if (row := _row(line))]
    for metric in (TRAIN_RETURN, EVAL_SCORE):
        values = [float(row[metric]) for row in rows if isinstance(row.get(metric), int | float)]
        if len(values) > 1:
            return values
    return []


def _sessions(path: Path) -> list[Path]:
    trials = trial_paths(path) or [path]
    return [session for trial in trials for session in session_paths(trial)] or [path]


def _session(base: Path, path: Path) -> dict[str, Any]:
    label = path.relative_to(base).as_posix() if path != base else path.name
    try:
        run = Run.open(path)
        state, error, attempts = run.state, run.error, run.attempts
    except OperantError as problem:
        return {"label": label, "seed": None, "state": "unreadable", "error": problem.cause}
    newest = newest_values(path / METRICS_FILE, LAST_KEYS)
    phase = read_phase(path) if state == "running" else None
    return {
        "label": label,
        "seed": run.seed,
        "state": state,
        "doing": phase.text() if phase else state,
        "error": error,
        "attempts": attempts,
        "frames": newest.get("frames", 0),
        "max_frame": run.spec.get("env", {}).get("max_frame"),
        "time": duration(newest.get("seconds", 0.0)),
        "return": newest.get(TRAIN_RETURN),
        "score": newest.get(FINAL_SCORE, newest.get(EVAL_SCORE)),
        "is_final": FINAL_SCORE in newest,
    }


def _provenance(sessions: Sequence[Path]) -> dict[str, Any]:
    """Commit and machine of the first session's first attempt, as far as they are known."""
    try:
        found = json.loads(provenance_path(sessions[0], 1).read_bytes()) if sessions else {}
        git = (found.get("git") or [{}])[0]
        return {"commit": git.get("sha"), "dirty": git.get("dirty"), "python": found.get("python")}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = file.read_bytes().split(b"\n")[:-1]
    except OSError:
        return
    yield from (row for line in lines if (row := _row(line)))


def _row(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}
