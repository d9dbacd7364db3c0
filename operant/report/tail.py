"""The rows that a growing JSON-lines file has gained since the last look, without rereading it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from operant.run.metrics import unreadable

FIRST_LOOK = 65_536
BLOCK = 4096


class Tail:
    """Follows one file. The first look reads at most `first_look` bytes of its end, or all of it for None.

    A file that has become shorter was cut back by a resume and is read anew. After each look
    `is_history` says whether its rows were there before: on the first look and after such a cut. A
    line that is still being written waits for the next look.
    """

    def __init__(self, path: Path, first_look: int | None = FIRST_LOOK) -> None:
        self.path = path
        self._first_look = first_look
        self.is_history = False
        self._offset: int | None = None

    def read(self) -> list[dict[str, Any]]:
        """The complete rows since the last call; none while the file does not exist. `RunError` if it is no file."""
        try:
            with self.path.open("rb") as file:
                return self._read_from(file, self.path.stat().st_size)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise unreadable(self.path, error) from None

    def _read_from(self, file: BinaryIO, size: int) -> list[dict[str, Any]]:
        self.is_history = self._offset is None or size < self._offset
        first = 0 if self._first_look is None else max(0, size - self._first_look)
        start = first if self._offset is None or self.is_history else self._offset
        file.seek(start)
        data: bytes = file.read(size - start)
        complete = data[: data.rfind(b"\n") + 1]
        self._offset = start + len(complete)
        return [row for line in complete.splitlines() if (row := _row(line)) is not None]


def last_rows(path: Path) -> list[dict[str, Any]]:
    """The rows in the last `FIRST_LOOK` bytes of a file; enough for what a run says of itself at its end."""
    return Tail(path).read()


def newest_values(path: Path | str, keys: Iterable[str], most: int = FIRST_LOOK) -> dict[str, Any]:
    """The last known value of each key in the final `most` bytes of a file; read backwards, no further than needed.

    Only lines that name a key which is still looked for are parsed, so that a list of thousands of runs stays quick.
    `RunError` if it is no file.
    """
    wanted = {key: json.dumps(key).encode() for key in keys}
    found: dict[str, Any] = {}
    try:
        with open(path, "rb") as file:
            for line in _lines_backwards(file, most):
                if any(name in line for name in wanted.values()):
                    row = _row(line) or {}
                    known = {key: row[key] for key in wanted if row.get(key) is not None}
                    found |= known
                    wanted = {key: name for key, name in wanted.items() if key not in known}
                if not wanted:
                    break
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise unreadable(Path(path), error) from None
    return found


def _lines_backwards(file: BinaryIO, most: int) -> Iterator[bytes]:
    """The whole lines among the last `most` bytes, the last first; what is left of a torn one is passed over."""
    end = file.seek(0, os.SEEK_END)
    floor = max(0, end - most)
    pending = b""
    is_torn = True
    while end > floor:
        start = max(floor, end - BLOCK)
        file.seek(start)
        pending = file.read(end - start) + pending
        end = start
        first, *lines = pending.split(b"\n")
        for line in reversed(lines):
            if not is_torn and line:
                yield line
            is_torn = False
        pending = first + b"\n" if lines else first
    if floor == 0 and pending.strip() and not is_torn:
        yield pending


def _row(line: bytes) -> dict[str, Any] | None:
    """The row of a line, or None for the remains of one: where a look or a killed writer cut it."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None
