"""What a session has written, less the clock, and in which file and key two sessions differ first."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.run.checkpoint import Checkpoint, list_checkpoints, verify
from operant.run.layout import EPISODES_FILE, METRICS_FILE
from operant.run.metrics import read_rows
from operant.run.progress import without_timing
from operant.run.run import Run

Rows = list[dict[str, Any]]
LONGEST = 80


@dataclass(frozen=True)
class Records:
    """Everything of a session that the same spec and seed must give again, byte for byte.

    `checkpoints` are those that are kept, by name, newest last; each has the hashes of its files.
    """

    metrics: Rows
    episodes: Rows
    checkpoints: dict[str, Checkpoint]

    @classmethod
    def of(cls, run: Run) -> Records:
        """Those of a session; raises `CorruptCheckpoint` for a checkpoint that is not what its manifest says."""
        saved = [verify(found.path) for found in list_checkpoints(run.checkpoints)]
        return cls(
            metrics=untimed_rows(run.path / METRICS_FILE),
            episodes=untimed_rows(run.path / EPISODES_FILE),
            checkpoints={each.path.name: each for each in saved},
        )

    @property
    def newest(self) -> Checkpoint:
        """The last checkpoint."""
        return list(self.checkpoints.values())[-1]


def untimed_rows(path: Path) -> Rows:
    """The rows of a log less their timing columns; no file means no rows."""
    return [without_timing(row) for row in read_rows(path)]


def difference(first: Records, second: Records) -> str | None:
    """Where two sessions differ first: the file and the key; None where they are the same bytes.

    Checkpoints that only one of them still keeps are passed over, but the newest must be in both.
    """
    found = rows_difference(METRICS_FILE, first.metrics, second.metrics)
    found = found or rows_difference(EPISODES_FILE, first.episodes, second.episodes)
    if found:
        return found
    newest = [next(reversed(each.checkpoints), "none") for each in (first, second)]
    if newest[0] != newest[1] or not first.checkpoints:
        return f"the newest checkpoints are {newest[0]} and {newest[1]}"
    for name in sorted(first.checkpoints.keys() & second.checkpoints.keys()):
        found = checkpoint_difference(first.checkpoints[name], second.checkpoints[name])
        if found:
            return f"checkpoints/{name}: {found}"
    return None


def rows_difference(file: str, first: Rows, second: Rows) -> str | None:
    """The first line and key in which two logs differ."""
    for number, (mine, theirs) in enumerate(zip(first, second, strict=False), start=1):
        if json.dumps(mine) != json.dumps(theirs):
            return f"{file} line {number}: {_key_difference(mine, theirs)}"
    if len(first) != len(second):
        return f"{file}: {len(first)} and {len(second)} lines"
    return None


def checkpoint_difference(first: Checkpoint, second: Checkpoint) -> str | None:
    """The first file, and where it can be told the first tensor or key, in which two checkpoints differ."""
    if first.files.keys() != second.files.keys():
        return f"only one of them has {', '.join(sorted(first.files.keys() ^ second.files.keys()))}"
    name = next((name for name in first.files if first.files[name] != second.files[name]), None)
    reader = READERS.get(Path(name or "").suffix)
    if name is None or reader is None:
        return name
    mine, theirs = (reader((each.path / name).read_bytes()) for each in (first, second))
    return f"{name}: {_key_difference(mine, theirs)}" if repr(mine) != repr(theirs) else name


def _key_difference(mine: dict[str, Any], theirs: dict[str, Any]) -> str:
    """The path of the first key whose values differ, with the values where they are short."""
    if list(mine) != list(theirs):
        odd = sorted(mine.keys() ^ theirs.keys())
        return f"only one of them has {odd[0]}" if odd else "the order of the keys"
    # By their text: 1 and 1.0 are equal in Python, and are not the same bytes.
    key = next(key for key in mine if repr(mine[key]) != repr(theirs[key]))
    values = mine[key], theirs[key]
    if all(isinstance(value, dict) for value in values):
        return f"{key}.{_key_difference(*values)}"
    shown = " and ".join(map(repr, values))
    return key if len(shown) > LONGEST else f"{key}: {shown}"


def _tensors(content: bytes) -> dict[str, bytes]:
    """The tensors of a safetensors file by name, as bytes of whatever type they are."""
    size = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    spans: dict[str, Sequence[int]] = {
        name: tensor["data_offsets"] for name, tensor in header.items() if name != "__metadata__"
    }
    return {name: data[start:end] for name, (start, end) in spans.items()}


READERS: dict[str, Callable[[bytes], dict[str, Any]]] = {".safetensors": _tensors, ".json": json.loads}
