"""Any number of runs at a glance: state, progress, speed, time to go, score, a small curve, alerts.

Files are only read, so a monitor can be opened and closed at will.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from operant.errors import OperantError
from operant.report.formatting import clock, columns, compact, score
from operant.report.status import Follower, SessionStatus
from operant.report.summary import overall_state
from operant.report.tail import Tail
from operant.run.layout import EVENTS_FILE, METRICS_FILE, RUN_FILE, session_paths, trial_paths
from operant.run.run import find_sessions, list_experiments
from operant.run.tags import read_tags

HEADINGS = ["run", "state", "done", "frames", "per s", "to go", "score", "return", "curve"]
RIGHT = {2, 3, 4, 5, 6, 7}
BLOCKS, ASCII_BLOCKS = "▁▂▃▄▅▆▇█", "._-=+*#@"
CURVE_WIDTH = 16
CURVE_POINTS = 400
CURVE_BYTES = 1 << 20
RETURN = "train/return"
RECENT_SECONDS = 3600.0
SEARCH_SECONDS = 5.0
MOST_ALERTS = 5
# Events that tell of the run's own course, which the state shows already.
COURSE = {"resume", "stop"}


@dataclass(frozen=True)
class RunStatus:
    """One run at one moment: its sessions together.

    `frames`, `total` and `rate` are summed; `curve` has the returns of all sessions in order of their frames.
    """

    name: str
    path: Path
    state: str
    doing: str
    sessions: int
    running: int
    frames: int
    total: int
    rate: float | None
    eta: float | None
    score: float | None
    train_return: float | None
    curve: tuple[float, ...]
    alerts: tuple[str, ...]
    error: str | None

    @property
    def share(self) -> float:
        """Progress from 0 to 1."""
        return min(1.0, self.frames / self.total) if self.total else 0.0

    def as_dict(self) -> dict[str, Any]:
        """The same for `--json`."""
        return {**asdict(self), "path": str(self.path), "curve": list(self.curve), "alerts": list(self.alerts)}


class SessionMonitor:
    """Follows one session: where it stands, its returns so far, and its alerts."""

    def __init__(self, session: Path) -> None:
        self._follower = Follower(session)
        self._metrics, self._events = Tail(session / METRICS_FILE, CURVE_BYTES), Tail(session / EVENTS_FILE)
        self.returns: deque[tuple[int, float]] = deque(maxlen=CURVE_POINTS)
        self.alerts: list[str] = []

    def look(self) -> SessionStatus:
        """Read what is new."""
        rows = self._metrics.read()
        if self._metrics.is_history:
            self.returns.clear()
        self.returns += [(row["frames"], row[RETURN]) for row in rows if isinstance(row.get(RETURN), int | float)]
        self.alerts += [_alert(row) for row in self._events.read() if row.get("kind") not in COURSE]
        return self._follower.look()


class RunMonitor:
    """Follows the sessions of one run, those that appear later too."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self._sessions: dict[Path, SessionMonitor] = {}

    def look(self) -> RunStatus:
        """Read what is new and say where the run stands."""
        for session in _sessions(self.path):
            self._sessions.setdefault(session, SessionMonitor(session))
        return self._status([each.look() for each in self._sessions.values()])

    def _status(self, found: Sequence[SessionStatus]) -> RunStatus:
        running = [each for each in found if each.state == "running"]
        leading = next((each for each in running if each.phase_text), running[0] if running else None)
        state = overall_state([each.state for each in found])
        return RunStatus(
            name=self.name,
            path=self.path,
            state=state,
            doing=leading.doing if leading else state,
            sessions=len(found),
            running=len(running),
            frames=sum(each.frames for each in found),
            total=sum(each.total or 0 for each in found),
            rate=sum(rates) if (rates := [each.rate for each in running if each.rate]) else None,
            eta=max((each.eta for each in found if each.eta is not None), default=None),
            score=_mean([each.eval_score for each in found]),
            train_return=_mean([each.train_return for each in found]),
            curve=tuple(value for _, value in sorted(at for each in self._sessions.values() for at in each.returns)),
            alerts=tuple(dict.fromkeys(alert for each in self._sessions.values() for alert in each.alerts)),
            error=next((each.error for each in found if each.error), None),
        )


class Monitor:
    """Follows the given runs, or without any all that run now or ended within the last hour."""

    def __init__(self, runs: Sequence[tuple[Path, str]], root: Path) -> None:
        self._root = root
        self._given = bool(runs)
        self._searched = float("-inf")
        self._monitors = {path: RunMonitor(path, name) for path, name in runs}

    def look(self) -> list[RunStatus]:
        """Every run as it stands, those that run first, then newest first."""
        if not self._given and time.monotonic() - self._searched > SEARCH_SECONDS:
            self._searched = time.monotonic()
            fresh = {path: RunMonitor(path, "/".join(path.parts[-2:])) for path in _recent(self._root)}
            self._monitors = {path: self._monitors.get(path, made) for path, made in fresh.items()}
        found = [each.look() for each in self._monitors.values()]
        return found if self._given else sorted(found, key=lambda each: each.state not in ("running", "new"))


def monitor_lines(found: Sequence[RunStatus], width: int, unicode: bool = True) -> list[str]:
    """A heading, a line for each run, then alerts and errors; no line is wider than the terminal."""
    if not found:
        return ["nothing runs here, and nothing ended within the last hour; `operant runs` lists all runs"]
    rows = [HEADINGS, *(_cells(each, BLOCKS if unicode else ASCII_BLOCKS) for each in found)]
    # The curve goes first where there is no room, then the speed and what is left of the time.
    for dropped in ((), (8,), (8, 7), (8, 7, 4), (8, 7, 4, 3)):
        kept = [place for place in range(len(HEADINGS)) if place not in dropped]
        right = {new for new, old in enumerate(kept) if old in RIGHT}
        table = columns([[row[place] for place in kept] for row in rows], right=right)
        if max(map(len, table)) <= width:
            break
    return [line[:width] for line in (*table, *_trouble(found))]


def sparkline(values: Sequence[float], width: int = CURVE_WIDTH, blocks: str = BLOCKS) -> str:
    """The values as a row of blocks from the lowest to the highest, each the mean of its share of them."""
    if len(values) == 0:
        return ""
    means = [float(part.mean()) for part in np.array_split(np.asarray(values), min(width, len(values)))]
    low, span = min(means), (max(means) - min(means)) or 1.0
    return "".join(blocks[min(len(blocks) - 1, int((value - low) / span * len(blocks)))] for value in means)


def _cells(found: RunStatus, blocks: str) -> list[str]:
    sessions = f" ({found.running}/{found.sessions})" if found.running and found.sessions > 1 else ""
    return [
        found.name,
        f"{found.doing}{sessions}",
        f"{int(100 * found.share + 1e-9)} %",
        f"{compact(found.frames)}/{compact(found.total)}" if found.total else compact(found.frames),
        compact(found.rate) if found.rate else "-",
        "-" if found.eta is None else clock(found.eta),
        score(found.score),
        score(found.train_return),
        sparkline(found.curve, blocks=blocks),
    ]


def _trouble(found: Sequence[RunStatus]) -> list[str]:
    told = [f"{each.name}: {each.error.strip().splitlines()[0]}" for each in found if each.error and each.error.strip()]
    alerts = [f"{each.name}: {alert}" for each in found for alert in each.alerts]
    more = len(alerts) - MOST_ALERTS
    return [*told, *alerts[-MOST_ALERTS:], *([f"and {more} alerts before these; operant show RUN"] if more > 0 else [])]


def _sessions(path: Path) -> list[Path]:
    """The session directories of an experiment, a trial, or the session itself; none while it is being made."""
    if (path / RUN_FILE).is_file():
        return [path]
    return [session for trial in trial_paths(path) or [path] for session in session_paths(trial)]


def _recent(root: Path) -> list[Path]:
    """Runs of which a session wrote within the last hour, or runs; newest first, without archived ones."""
    found = [each.path for each in reversed(list_experiments(root)) if not read_tags(each.path).archived]
    return [path for path in found if _is_fresh(path)]


def _is_fresh(path: Path) -> bool:
    since = time.time() - RECENT_SECONDS
    if any(_modified(session / name) > since for session in _sessions(path) for name in (RUN_FILE, METRICS_FILE)):
        return True
    try:
        return any(run.document["state"] == "running" and run.state == "running" for run in find_sessions(path))
    except OperantError:
        return False


def _modified(file: Path) -> float:
    try:
        return os.stat(file).st_mtime
    except OSError:
        return 0.0


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _alert(row: dict[str, Any]) -> str:
    lines = f"{row.get('kind')}: {row.get('message')}".splitlines()
    return lines[0] if lines else ""
