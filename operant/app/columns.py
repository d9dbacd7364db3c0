"""Metric files in memory, as columns. A file that grows is read from where the last look ended."""

from __future__ import annotations

import json
import zlib
from array import array
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from operant.report.align import Curve, increasing

MOST_BYTES = 512 << 20
CELL_BYTES = 8
NAN = float("nan")


class MetricFile:
    """The rows of one `metrics.jsonl` by column; NaN where a row has no such value."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._forget()

    def _forget(self) -> None:
        self.rows = 0
        self.columns: dict[str, array[float]] = {}
        self._offset = 0
        self._last = (0, 0, 0)
        self._curves: dict[tuple[str, str], Curve] = {}

    @property
    def version(self) -> tuple[int, int]:
        """Changes whenever the rows do."""
        return self._offset, self._last[2]

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return self.rows * len(self.columns) * CELL_BYTES

    def refresh(self) -> None:
        """Take in the whole lines that are new; all of them anew where a resume cut the file back in between."""
        try:
            if self.path.stat().st_size == self._offset:
                return
            with self.path.open("rb") as file:
                start, size, checksum = self._last
                file.seek(start)
                if zlib.crc32(file.read(size)) != checksum:
                    self._forget()
                file.seek(self._offset)
                data = file.read()
        except (FileNotFoundError, NotADirectoryError):
            self._forget()
            return
        self._take(data[: data.rfind(b"\n") + 1])

    def _take(self, data: bytes) -> None:
        if not data:
            return
        self._add(_parsed(data))
        start = data.rfind(b"\n", 0, -1) + 1
        self._last = (self._offset + start, len(data) - start, zlib.crc32(data[start:]))
        self._offset += len(data)
        self._curves.clear()

    def _add(self, rows: list[dict[str, Any]]) -> None:
        """Rows column by column, which is much quicker than one by one."""
        names = dict.fromkeys(key for row in rows for key in row)
        for name in [*self.columns, *(name for name in names if name not in self.columns)]:
            values = [value if isinstance(value := row.get(name), int | float) else NAN for row in rows]
            if name in self.columns or any(value == value for value in values):
                self.columns.setdefault(name, array("d", [NAN]) * self.rows).extend(values)
        self.rows += len(rows)

    def curve(self, metric: str, x: str) -> Curve:
        """A metric over an axis, where both are known."""
        if (metric, x) not in self._curves:
            self._curves[metric, x] = increasing(self._column(x), self._column(metric))
        return self._curves[metric, x]

    def last(self, key: str) -> float | None:
        """The newest known value of a column."""
        known = self._column(key)
        known = known[np.isfinite(known)]
        return float(known[-1]) if len(known) else None

    def _column(self, key: str) -> np.ndarray:
        found = self.columns.get(key)
        return np.full(self.rows, NAN) if found is None else np.array(found)


class MetricFiles:
    """The files that were looked at last, within `most` bytes of memory. One thread at a time may use it."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.most = most
        self._files: OrderedDict[Path, MetricFile] = OrderedDict()
        self._held = 0

    def open(self, path: Path) -> MetricFile:
        """The file, up to date."""
        file = self._files.setdefault(path, MetricFile(path))
        self._files.move_to_end(path)
        self._held -= file.size
        file.refresh()
        self._held += file.size
        while self._held > self.most and len(self._files) > 1:
            self._held -= self._files.popitem(last=False)[1].size
        return file


def _parsed(data: bytes) -> list[dict[str, Any]]:
    """The rows of whole lines; at once where all are good, else one by one without those that are not."""
    lines = [line for line in data.splitlines() if line]
    try:
        found = json.loads(b"[" + b",".join(lines) + b"]")
    except ValueError:
        found = [_row(line) for line in lines]
    return [row for row in found if isinstance(row, dict)]


def _row(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
