"""Episodes on disk: an index that is quick to build and to renew, each episode read in full only when it is looked at.

A file may grow while it is read, end in half a line, or be cut back by a resume. None of that is an error; a line that
is no episode is counted and passed over.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import groupby, islice
from pathlib import Path
from typing import Any, BinaryIO

from operant.errors import UsageError
from operant.report.timeline import POLICY
from operant.run import layout
from operant.run.episode import Episode

SUFFIX = ".jsonl"
EVALUATION = "eval"
FEW = 3


@dataclass(frozen=True, slots=True)
class Entry:
    """One episode in short.

    `label` and `name` identify it: the file within its run, and the episode within its file (its id, else the number
    of its line). `tokens` are those that the policy wrote; None is "not known".
    """

    label: str
    name: str
    line: int
    offset: int
    size: int
    env: str
    item: str | None
    split: str
    seed: int | None
    score: float | None
    length: int
    ended: str
    version: int | None
    frames: int
    updates: int
    turns: int
    tokens: int
    faults: int
    took: float | None
    parent: str | None
    error: str | None
    parts: Mapping[str, float]

    @property
    def session(self) -> str:
        """The label of its session, whichever of the session's files it is in."""
        return self.label.removesuffix(EVALUATION).removesuffix("/")

    @property
    def from_eval(self) -> bool:
        """Whether it is of an evaluation (`operant eval --tasks`), which may ask in another way than training."""
        return self.label.endswith(EVALUATION)

    @property
    def full_name(self) -> str:
        """The name within the run."""
        return f"{self.label}/{self.name}" if self.label else self.name


class EpisodeFile:
    """The index of one file. `refresh` reads what was added since the last call."""

    def __init__(self, path: Path, label: str = "") -> None:
        self.path = path
        self.label = label
        self._forget()

    def _forget(self) -> None:
        self.entries: list[Entry] = []
        self.damaged = 0
        self._lines = 0
        self._offset = 0
        self._last = (0, 0, 0)
        self._names: dict[str, str] = {}

    def refresh(self) -> None:
        """Index the whole lines that are new; all of them anew where the file was cut back in between."""
        try:
            with self.path.open("rb") as file:
                if not self._is_continued(file):
                    self._forget()
                file.seek(self._offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._take(line)
        except FileNotFoundError:
            self._forget()

    def lines_of(self, entries: Iterable[Entry]) -> Iterator[bytes]:
        """The lines of episodes, as they were written."""
        with self.path.open("rb") as file:
            for entry in entries:
                file.seek(entry.offset)
                yield file.read(entry.size)

    def _is_continued(self, file: BinaryIO) -> bool:
        """Whether the last line that was read is still where it was."""
        start, size, checksum = self._last
        file.seek(start)
        return zlib.crc32(file.read(size)) == checksum

    def _take(self, line: bytes) -> None:
        self._lines += 1
        try:
            self.entries.append(self._entry(json.loads(line), len(line)))
        except (AttributeError, KeyError, TypeError, ValueError):
            self.damaged += bool(line.strip())
        self._last = (self._offset, len(line), zlib.crc32(line))
        self._offset += len(line)

    def _entry(self, row: Mapping[str, Any], size: int) -> Entry:
        # An evaluation that is repeated uses its names again; a parent is the last one of its name.
        parent = self._names.get(row["parent"], row["parent"]) if row.get("parent") else None
        spoken = [turn for turn in row.get("turns") or () if turn["role"] == POLICY]
        parts = row.get("parts") or {}
        version = row.get("version", parts.get("version"))
        return Entry(
            label=self.label,
            name=self._unused(str(row.get("id") or self._lines)),
            line=self._lines,
            offset=self._offset,
            size=size,
            env=row["env"],
            item=row.get("item"),
            split=row["split"],
            seed=row.get("seed"),
            score=row["score"],
            length=row.get("length") or 0,
            ended=row["ended"],
            version=None if version is None else int(version),
            frames=row.get("frames") or 0,
            updates=row.get("updates") or 0,
            turns=len(spoken),
            tokens=sum([turn.get("tokens") or 0 for turn in spoken]),
            faults=sum([1 for turn in row.get("turns") or () if turn.get("fault")]),
            took=row.get("took"),
            parent=parent,
            error=row.get("error"),
            parts=parts,
        )

    def _unused(self, name: str) -> str:
        """The name; a second episode of the same name has its line beside it."""
        chosen = f"{name}:{self._lines}" if name in self._names else name
        self._names[name] = self._names[chosen] = chosen
        return chosen


@dataclass
class Catalogue:
    """The episodes of a run, trial, experiment or single file. Several threads may ask it at once."""

    path: Path
    files: dict[Path, EpisodeFile] = field(default_factory=dict)
    _turn: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def open(cls, path: Path) -> Catalogue:
        """The catalogue of what lies at `path`, up to date."""
        catalogue = cls(Path(path))
        catalogue.refresh()
        return catalogue

    def refresh(self) -> None:
        """Take in what is new: episodes, and sessions that began since."""
        with self._turn:
            for label, path in _labelled(self.path, episode_files(self.path)).items():
                file = self.files.setdefault(path, EpisodeFile(path, label))
                file.refresh()

    @property
    def entries(self) -> list[Entry]:
        """All episodes: file by file, oldest first."""
        return [entry for file in self.files.values() for entry in file.entries]

    @property
    def damaged(self) -> int:
        """Lines that are no episodes."""
        return sum(file.damaged for file in self.files.values())

    def name_of(self, entry: Entry) -> str:
        """The shortest name that `find` understands: without the file's label where there is one file."""
        return entry.name if len(self.files) == 1 else entry.full_name

    def latest_names(self, most: int) -> list[str]:
        """The names of the last episodes of all files together, newest training first."""
        return [self.name_of(entry) for entry in islice(newest_first(self.entries), most)]

    def find(self, name: str) -> Entry:
        """The episode of that name, with or without its file's label; `UsageError` with the nearest names."""
        entries = self.entries
        found = [entry for entry in entries if entry.full_name == name]
        found = found or [entry for entry in entries if entry.name == name]
        if len(found) == 1:
            return found[0]
        if found:
            raise self._ambiguous(name, found)
        raise self._unknown(name, entries)

    def lines_of(self, entries: Iterable[Entry]) -> Iterator[bytes]:
        """The lines of episodes, as they were written; quickest where those of one file stand together."""
        files = {file.label: file for file in self.files.values()}
        for label, group in groupby(entries, lambda entry: entry.label):
            yield from files[label].lines_of(group)

    def read(self, entry: Entry) -> Episode:
        """The whole episode."""
        return Episode.from_dict(json.loads(next(self.lines_of([entry]))))

    def _ambiguous(self, name: str, found: Sequence[Entry]) -> UsageError:
        names = [entry.full_name for entry in found]
        place = layout.shown(self.path)
        return UsageError(
            f"{len(names)} episodes are called {name!r}: {', '.join(names[:FEW])}",
            place=place,
            remedy=f"operant show '{place}#{names[0]}'",
        )

    def _unknown(self, name: str, entries: Sequence[Entry]) -> UsageError:
        place = layout.shown(self.path)
        if not entries:
            return UsageError("no episode was written here yet", place=place)
        names = [self.name_of(entry) for entry in entries]
        near = get_close_matches(name, names, n=FEW, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {len(names):,}, the last is {names[-1]}"
        return UsageError(
            f"there is no episode {name!r}; {hint}", place=place, remedy=f"operant show {place} --episodes"
        )


def episode_files(path: Path) -> list[Path]:
    """The files of episodes at a path: the file itself, a session's, or those of all sessions below."""
    if path.suffix == SUFFIX or path.is_file():
        return [path]
    trials = layout.trial_paths(path) or [path]
    folders = [session for trial in trials for session in layout.session_paths(trial)] or [path]
    names = (layout.EPISODES_FILE, layout.EVALUATIONS_FILE)
    return [file for folder in folders for name in names if (file := folder / name).is_file()]


def holds_episodes(path: Path) -> bool:
    """Whether there is a file of episodes at a path."""
    return any(file.is_file() for file in episode_files(path))


def _labelled(base: Path, files: Sequence[Path]) -> dict[str, Path]:
    """Files by what identifies them below `base`: `session_0`, `trial_001/session_0`, `session_0/eval`."""
    one_trial = len(layout.trial_paths(base)) <= 1
    return {_label(base, file, one_trial): file for file in files}


def _label(base: Path, file: Path, one_trial: bool) -> str:
    if file == base:
        return ""
    parts = [part for part in file.parent.relative_to(base).parts if not (one_trial and part.startswith("trial_"))]
    return "/".join([*parts, *([EVALUATION] if file.name == layout.EVALUATIONS_FILE else [])])


def newest_first(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Episodes by how far training had come, and within that the last one written first."""
    return iter(sorted(entries, key=lambda entry: (entry.frames, entry.updates, entry.line), reverse=True))
