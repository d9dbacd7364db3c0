"""A run directory as it is at one moment, also while it is trained: what a resume from it needs fits together.

Checkpoints are opened first and logs are measured after them, so every log is at least as long as each checkpoint says.
An open file stays readable when training prunes its checkpoint.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from operant.errors import OperantError, UsageError
from operant.run.checkpoint import Checkpoint, list_checkpoints
from operant.run.layout import (
    CHECKPOINTS_FOLDER,
    EXPERIMENT_FILE,
    LOCK_FILE,
    MANIFEST_FILE,
    METRICS_FILE,
    PHASE_FILE,
    RUN_FILE,
    SYNC_FILE,
    SYNC_LOG,
    TRANSFER_FILE,
    is_session_path,
    session_paths,
    shown,
    trial_paths,
)
from operant.run.requests import REQUEST_FILE
from operant.run.run import Run

OWN_FILES = {LOCK_FILE, PHASE_FILE, REQUEST_FILE, SYNC_FILE, SYNC_LOG, TRANSFER_FILE}
GROWING = (".jsonl", ".log")
DATABASE = ".db"
BESIDE_DATABASE = ("-journal", "-wal", "-shm")  # there while somebody writes it
TAIL_BYTES = 1 << 18


class ChangedMeanwhile(Exception):
    """The run went on in a way that what was read does not fit together; read it again."""


@dataclass(frozen=True)
class Source:
    """The first `size` bytes of a file; `expected` is the hash that its checkpoint says it has."""

    path: str
    file: Path
    size: int
    handle: int | None = None
    expected: str | None = None

    @property
    def growing(self) -> bool:
        """Whether rows or lines are added to it."""
        return self.path.endswith(GROWING)

    @property
    def identity(self) -> tuple[Any, ...]:
        """The same for the same content, as far as the file system can say."""
        found = os.stat(self.file) if self.handle is None else os.fstat(self.handle)
        return (self.path, self.size, found.st_ino, found.st_mtime_ns if not self.growing else found.st_size)

    def read(self, offset: int, size: int) -> bytes:
        """Bytes of it, all of them or `ChangedMeanwhile`."""
        try:
            if self.handle is not None:
                data = os.pread(self.handle, size, offset)
            else:
                with open(self.file, "rb") as file:
                    file.seek(offset)
                    data = file.read(size)
        except FileNotFoundError:
            raise ChangedMeanwhile from None
        if len(data) != size:
            raise ChangedMeanwhile
        return data

    def content(self) -> Path | bytes:
        """For a client that reads by itself: the file, or its bytes where they are only a part of it."""
        if not self.growing and self.file.exists():
            return self.file
        return self.read(0, self.size)


def experiment_of(place: Path) -> Path:
    """The experiment that a directory of it belongs to; `UsageError` where it belongs to none."""
    place = place.resolve()
    for folder in (place, *place.parents[:2]):
        if (folder / EXPERIMENT_FILE).is_file():
            return folder
    raise UsageError(
        f"this is no experiment, nor a part of one: it has no {EXPERIMENT_FILE}",
        place=shown(place),
        remedy="name a directory that `operant train` made; `operant runs` lists them",
    )


def unit_paths(experiment: Path) -> list[str]:
    """The sessions of an experiment, as relative paths."""
    found = [session for trial in trial_paths(experiment) for session in session_paths(trial)]
    return [path.relative_to(experiment).as_posix() for path in found if (path / RUN_FILE).is_file()]


def experiment_sources(experiment: Path, stack: ExitStack) -> list[Source]:
    """The files of an experiment that belong to no session; of a database a copy, which `stack` removes."""
    found = [source for source in _files(experiment, experiment) if not source.path.endswith(BESIDE_DATABASE)]
    return [_copied(source, stack) if source.path.endswith(DATABASE) else source for source in found]


def session_sources(session: Path, stack: ExitStack) -> tuple[list[Source], list[Checkpoint]]:
    """The files of a session and its checkpoints; `stack` closes what is opened."""
    saved = [(each, _open_checkpoint(session, each, stack)) for each in list_checkpoints(session / CHECKPOINTS_FOLDER)]
    others = list(_files(session, session))
    logs = {source.path: source.size for source in others if source.growing}
    # A log that was cut back meanwhile, by a resume, leaves out the checkpoints that it no longer reaches.
    fitting = [
        (each, files)
        for each, files in saved
        if files and all(logs.get(name, 0) >= size for name, size in each.offsets.items())
    ]
    sources = [*others, *(file for _, files in fitting for file in files)]
    return sources, [each for each, _ in fitting]


def session_facts(run: Run, saved: list[Checkpoint], size: int) -> dict[str, Any]:
    """What a listing says of a session, from its state and the rows in the first `size` bytes of its metrics."""
    rows = _last_rows(run.path / METRICS_FILE, size)
    finals = [row["final/score"] for row in rows if row.get("final/score") is not None]
    evaluations = [row["eval/score"] for row in rows if row.get("eval/score") is not None]
    scored = finals or evaluations or [each.score for each in saved if each.score is not None]
    return {
        "name": run.name,
        "state": run.state,
        "seed": run.seed,
        "frames": max([int(row.get("frames") or 0) for row in rows[-1:]], default=0),
        "max_frame": run.max_frame,
        "checkpoint": saved[-1].at.frames if saved else None,
        "score": scored[-1] if scored else None,
        "score_is_final": bool(finals),
    }


def _open_checkpoint(session: Path, saved: Checkpoint, stack: ExitStack) -> list[Source]:
    """All files of a checkpoint, held open; none where it was pruned meanwhile."""
    found = []
    for name, expected in {**saved.files, MANIFEST_FILE: None}.items():
        file = saved.path / name
        try:
            handle = os.open(file, os.O_RDONLY)
        except FileNotFoundError:
            return []
        stack.callback(os.close, handle)
        path = file.relative_to(session).as_posix()
        found.append(Source(path, file, os.fstat(handle).st_size, handle, expected))
    return found


def _files(folder: Path, unit: Path) -> Iterator[Source]:
    """The files below a folder that a copy needs: no hidden ones, locks or links, neither checkpoints nor sessions."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = Path(entry.path)
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        if entry.is_dir():
            if path != unit / CHECKPOINTS_FOLDER and not is_session_path(path):
                yield from _files(path, unit)
        elif entry.name not in OWN_FILES:
            try:
                size = _whole_lines(path) if entry.name.endswith(".jsonl") else path.stat().st_size
            except FileNotFoundError:
                continue
            yield Source(path.relative_to(unit).as_posix(), path, size)


def _whole_lines(file: Path) -> int:
    """The size of a file up to and with its last newline."""
    with open(file, "rb") as lines:
        end = lines.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - TAIL_BYTES)
            lines.seek(start)
            newline = lines.read(end - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            end = start
    return 0


def _last_rows(file: Path, size: int) -> list[dict[str, Any]]:
    try:
        with open(file, "rb") as lines:
            lines.seek(max(0, size - TAIL_BYTES))
            data = lines.read(min(size, TAIL_BYTES))
    except FileNotFoundError:
        return []
    rows = []
    for line in data.split(b"\n")[:-1]:
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return [row for row in rows if isinstance(row, dict)]


def _copied(source: Source, stack: ExitStack) -> Source:
    """A database as it is between two of its transactions, of which some may stand in files beside it only."""
    import sqlite3

    copy = Path(stack.enter_context(TemporaryDirectory(prefix="operant-push-"))) / source.file.name
    try:
        whole = sqlite3.connect(f"{source.file.resolve().as_uri()}?mode=ro", uri=True)
        with closing(whole), closing(sqlite3.connect(copy)) as target:
            whole.backup(target)
    except sqlite3.Error:
        raise ChangedMeanwhile from None
    return Source(source.path, copy, copy.stat().st_size)


def attempts_of(session: Path) -> int:
    """How often training was started there; a new attempt may cut logs back."""
    try:
        return Run.open(session).attempts
    except OperantError:
        raise ChangedMeanwhile from None
