"""The rows that a growing JSON-lines file has gained since the last look, without rereading it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, BinaryIO

from operant.run.metrics import unreadable

FIRST_LOOK = 65_536


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


def _row(line: bytes) -> dict[str, Any] | None:
    """The row of a line, or None for the remains of one: where a look or a killed writer cut it."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None
