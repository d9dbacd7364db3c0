"""How far a tracker has come in a session, in `track/<tracker>.json`: written after the store has taken the rows.

Before rows are sent, the last of them is noted as `pending`, so that a process that is killed in between is known to
have sent something that a resume may take back.

Resuming a run cuts its metrics back to a checkpoint and trains on, so a file that is long enough is not proof that it
is the one that was sent. Marks on rows, thinned out towards the beginning, find the last row that still is.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

from operant.run.disk import write_text
from operant.run.layout import METRICS_FILE, TRACK_FOLDER

MAX_MARKS = 128
SPACING = 8
"""Two marks are at most this part of their distance from the newest apart, or neighbors."""
State = Literal["following", "complete", "failed"]


@dataclass(frozen=True)
class Mark:
    """A metric row that was sent: where it begins and ends, its checksum and step, the episodes by then, its number."""

    begin: int
    end: int
    checksum: int
    step: int
    episodes: int
    row: int


@dataclass(frozen=True)
class Position:
    """What a tracker's store holds of a session; it may hold the rows up to `pending` too.

    `error` is why it does not get further.
    """

    metrics: int = 0
    episodes: int = 0
    step: int = -1
    rows: int = 0
    videos: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    pending: Mark | None = None
    state: State = "following"
    error: str | None = None
    place: str = ""

    def after(self, mark: Mark) -> Position:
        """The position once this row is sent."""
        marks = _thinned((*self.marks, mark))
        return replace(self, metrics=mark.end, episodes=mark.episodes, step=mark.step, rows=mark.row, marks=marks)

    def rewound(self, session: Path) -> Position | None:
        """None while the rows that were sent are still there; else the position of the last one that is."""
        newest = self.pending or (self.marks[-1] if self.marks else None)
        if newest is None or _is_there(session, newest):
            return None
        good = [mark for mark in self.marks if _is_there(session, mark)]
        start = replace(self, metrics=0, episodes=0, step=-1, rows=0, marks=(), pending=None)
        if not good:
            return start
        last = good[-1]
        return replace(start.after(last), marks=tuple(good))


@dataclass(frozen=True)
class PositionFile:
    """The position file of one tracker in one session."""

    session: Path
    tracker: str
    path: Path = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", self.session / TRACK_FOLDER / f"{file_stem(self.tracker)}.json")

    def read(self) -> Position:
        """The position; the beginning where there is none that can be read."""
        try:
            data: dict[str, Any] = json.loads(self.path.read_bytes())
            data.pop("tracker")
            marks = tuple(Mark(*mark) for mark in data.pop("marks"))
            pending = data.pop("pending")
            last = Mark(*pending) if pending else None
            return Position(**{**data, "videos": tuple(data["videos"]), "marks": marks, "pending": last})
        except (OSError, ValueError, KeyError, TypeError):
            return Position()

    def write(self, position: Position) -> None:
        """Replace the file, atomically and durably."""
        self.path.parent.mkdir(exist_ok=True)
        data = asdict(position)
        data["marks"] = [list(mark.values()) for mark in data["marks"]]
        data["pending"] = list(data["pending"].values()) if data["pending"] else None
        write_text(self.path, json.dumps({"tracker": self.tracker, **data}) + "\n")


def file_stem(tracker: str) -> str:
    """The name of a tracker's files: its own, or that of `module:class` without what a file name cannot have."""
    return re.sub(r"[^\w.-]", ".", tracker)


def read_positions(session: Path) -> dict[str, Position]:
    """The positions of all trackers of a session, by tracker."""
    found = {}
    for file in sorted((session / TRACK_FOLDER).glob("*.json")):
        try:
            tracker = json.loads(file.read_bytes())["tracker"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        found[tracker] = PositionFile(session, tracker).read()
    return found


def checksum(line: bytes) -> int:
    """Tells a row from the one that a resumed run writes in its place, which has other seconds at least."""
    return crc32(line)


def _thinned(marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """The marks, fewer towards the beginning once there are many: a resume goes back a little most of the time."""
    if len(marks) <= MAX_MARKS:
        return marks
    kept = [marks[-1]]
    for mark in reversed(marks[:-1]):
        if kept[-1].end - mark.end >= (marks[-1].end - mark.end) / (2 * SPACING):
            kept.append(mark)
    return tuple(reversed(kept))


def _is_there(session: Path, mark: Mark) -> bool:
    try:
        with (session / METRICS_FILE).open("rb") as file:
            return checksum(os.pread(file.fileno(), mark.end - mark.begin, mark.begin)) == mark.checksum
    except OSError:
        return False
