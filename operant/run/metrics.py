"""Append-only JSON lines: the form of metrics, episodes and events.

A row is one line; a line without its newline was cut by a kill and does not count. Values that JSON
cannot hold (NaN and the infinities) are written as null.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from operant.errors import RunError
from operant.run.disk import disk_guard
from operant.run.layout import shown

BUFFER_BYTES = 1 << 18
TAIL_BYTES = 1 << 16


def _to_plain(value: Any) -> Any:
    """Numbers of numpy and torch are asked for their plain value, arrays for a list, a path for its text."""
    if getattr(value, "ndim", 0) == 0 and hasattr(value, "item"):
        return value.item()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a row cannot hold a {type(value).__name__}")


# What a policy writes may hold these, and many readers would take them for the end of a line.
LINE_ENDS = {ord(sign): f"\\u{ord(sign):04x}" for sign in "\x85\u2028\u2029"}
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":"), ensure_ascii=False, default=_to_plain).encode


class JsonLines:
    """The single writer of a JSON-lines file; rows are buffered until `flush`.

    Opening it cuts a torn last line. `offset` counts the bytes of whole rows, those in the buffer
    included, so it is where the file will end after a flush.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._pending = bytearray()
        self._written = 0
        self.truncate_to(os.fstat(self._file).st_size)

    @property
    def offset(self) -> int:
        """Where the file ends once everything is flushed."""
        return self._written + len(self._pending)

    @property
    def closed(self) -> bool:
        """Whether the file was let go of."""
        return self._file < 0

    def append(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """Add a row; returns the keys whose value was not finite and became null."""
        lost: tuple[str, ...] = ()
        try:
            text = _encode(row)
        except ValueError:
            finite = {key: _finite(value) for key, value in row.items()}
            lost = tuple(key for key, value in row.items() if _has_lost(value, finite[key]))
            text = _encode(finite)
        if not text.isascii():
            text = text.translate(LINE_ENDS)
        self._pending += text.encode("utf-8", "replace") + b"\n"
        if len(self._pending) > BUFFER_BYTES:
            self.flush()
        return lost

    def flush(self) -> None:
        """Hand every buffered row to the operating system, where other processes see it."""
        if not self._pending:
            return
        with disk_guard(self.path, self.path.parent):
            while self._pending:
                # After a short write (a disk that fills) the rest stays pending; a later flush mends the torn line.
                written = os.write(self._file, self._pending)
                del self._pending[:written]
                self._written += written

    def sync(self) -> None:
        """Flush, and force the file to the disk."""
        self.flush()
        with disk_guard(self.path, self.path.parent):
            os.fsync(self._file)

    def truncate_to(self, offset: int) -> None:
        """Forget the rows past `offset`, buffered ones included, and what is left of a row cut in two.

        Never lengthens the file: compare `offset` afterwards to learn whether all of it was there.
        """
        self._pending.clear()
        size = os.fstat(self._file).st_size
        self._written = _whole_size(self._file, min(offset, size))
        if self._written < size:
            os.ftruncate(self._file, self._written)
            os.fsync(self._file)

    def close(self) -> None:
        """Let go of the file; rows still buffered are dropped, for only `flush` promises them."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The whole rows of a file, also while it is being written; no file means no rows.

    A torn last line is left out. Any other line that is not a JSON object means damage from
    outside and raises `RunError` with its line number.
    """
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unreadable(path, error) from None
    return [_parse(path, number, line) for number, line in enumerate(lines[:-1], start=1) if line]


def parse_row(line: bytes) -> dict[str, Any]:
    """The row of a line; an empty one for a line that is none."""
    try:
        row = json.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def unreadable(path: Path, error: OSError) -> RunError:
    """The error for rows that are there and cannot be read."""
    is_folder = isinstance(error, IsADirectoryError)
    remedy = "move it away, and restore the file from a copy" if is_folder else "ask its owner for it"
    return RunError(f"the file cannot be read: {error.strerror}", place=shown(path), remedy=remedy)


def read_last_row(path: Path) -> dict[str, Any]:
    """The last whole row of a file; empty where there is none that can be read."""
    try:
        with open(path, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - TAIL_BYTES))
            lines = file.read().split(b"\n")[:-1]
    except OSError:
        return {}
    return parse_row(lines[-1]) if lines else {}


def _parse(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise RunError(
            "this line is not a row; the file was damaged by something other than Operant",
            place=f"{shown(path)}:{number}",
            remedy=f"delete line {number}, or restore the file from a copy",
        )
    return row


def _whole_size(file: int, end: int) -> int:
    """The size of the whole rows among the first `end` bytes: up to and with their last newline."""
    while end > 0:
        start = max(0, end - TAIL_BYTES)
        newline = os.pread(file, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _finite(value: Any) -> Any:
    """The value with null in place of every number that JSON cannot hold."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    if value is None or isinstance(value, str | int):
        return value
    return _finite(_to_plain(value))


def _has_lost(before: Any, after: Any) -> bool:
    """Whether `_finite` put a null where there was a number."""
    if isinstance(after, dict):
        return any(_has_lost(before[key], after[key]) for key in after)
    if isinstance(after, list):
        return any(_has_lost(old, new) for old, new in zip(before, after, strict=True))
    return after is None and before is not None
