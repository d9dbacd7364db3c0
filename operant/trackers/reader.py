"""A session's files as batches, from a position on."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from operant.run.layout import EPISODES_FILE, MEDIA_FOLDER, METRICS_FILE
from operant.run.metrics import parse_row
from operant.trackers.position import Mark, Position, checksum
from operant.trackers.tracker import Batch

VIDEOS = (".mp4", ".gif")
WRITTEN_SECONDS = 2.0
"""A video that nobody has written to for so long is whole."""


def last_row(session: Path, position: Position) -> Mark | None:
    """The last row that is written past the position."""
    found = None
    for begin, line in _lines(session / METRICS_FILE, position.metrics):
        found = Mark(begin, begin + len(line), checksum(line), position.step, position.episodes, position.rows)
    return found


def batches(session: Path, position: Position, state: str, until: Mark | None) -> Iterator[tuple[Batch, Position]]:
    """Every batch that is written past the position, up to a row, each with the position once it is sent.

    A row is written after the episodes that ended before it. Episodes that no row follows come when the session is
    done: before, a resume may take them back. Videos of a checkpoint may be made at any time.
    """
    episodes = _Episodes(session, position.episodes)
    for begin, line in _lines(session / METRICS_FILE, position.metrics):
        if until is None or begin >= until.end:
            break
        row = parse_row(line)
        step = int(row.get("frames", position.step))
        taken = episodes.until(step)
        position = position.after(
            Mark(begin, begin + len(line), checksum(line), step, episodes.offset, position.rows + 1)
        )
        yield Batch(step, _numbers(row), taken), position
    left = episodes.until(None) if state == "done" else []
    videos = [video for video in _videos(session, position) if _is_whole(video)]
    if left or videos:
        step = max([position.step, *(int(row.get("frames", 0)) for row in left)])
        names = (*position.videos, *(video.name for video in videos))
        yield Batch(step, {}, left, videos), replace(position, episodes=episodes.offset, videos=names)


def has_unfinished_videos(session: Path, position: Position) -> bool:
    """Whether a video is being written at this moment."""
    return any(not _is_whole(video) for video in _videos(session, position))


class _Episodes:
    """The episodes from a byte on, taken up to one step after another."""

    def __init__(self, session: Path, offset: int) -> None:
        self.offset = offset
        self._lines = _lines(session / EPISODES_FILE, offset)
        self._next = next(self._lines, None)

    def until(self, step: int | None) -> list[dict[str, Any]]:
        """The episodes up to a step, or all; they are written in the order of their steps."""
        found = []
        while self._next is not None:
            begin, line = self._next
            row = parse_row(line)
            if step is not None and int(row.get("frames", 0)) > step:
                break
            found.append(row)
            self.offset, self._next = begin + len(line), next(self._lines, None)
        return found


def _lines(file: Path, offset: int) -> Iterator[tuple[int, bytes]]:
    """The whole lines from a byte on, each with where it begins."""
    try:
        with file.open("rb") as source:
            source.seek(offset)
            for line in source:
                if not line.endswith(b"\n"):
                    return
                yield offset, line
                offset += len(line)
    except FileNotFoundError:
        return


def _numbers(row: dict[str, Any]) -> dict[str, float]:
    """The numbers of a row; null stands for one that was not finite and has no place in a curve."""
    return {key: value for key, value in row.items() if isinstance(value, int | float) and not isinstance(value, bool)}


def _videos(session: Path, position: Position) -> list[Path]:
    """The videos that were not sent yet, in the order of the frames that their names have."""
    found = (session / MEDIA_FOLDER).glob("*")
    new = (path for path in found if path.suffix in VIDEOS and path.name not in position.videos)
    return sorted(new, key=lambda path: (_frame(path), path.name))


def _frame(video: Path) -> int:
    digits = re.search(r"\d+", video.stem)
    return int(digits[0]) if digits else 0


def _is_whole(video: Path) -> bool:
    try:
        return time.time() - video.stat().st_mtime > WRITTEN_SECONDS
    except FileNotFoundError:
        return True
