"""Watching a trial from Python: a redrawn table in a terminal, a table and a curve in a notebook, nothing in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from operant.api.handle import Handle
from operant.api.runs import Trial
from operant.report.live import View, live_lines, live_view
from operant.report.live import labels as short_labels
from operant.report.status import Follower, SessionStatus

CURVE_METRIC = "train/return"
REDRAW_SECONDS = 1.0


def watched(handle: Handle, progress: bool | None) -> Trial:
    """The trial when it has ended; meanwhile a view, where `progress` or a terminal or notebook asks for one."""
    view = _view(handle, progress)
    if view is None:
        return handle.wait()
    with view:
        return handle.wait(tick=view.refresh)


def in_notebook() -> bool:
    """Whether this runs in a Jupyter kernel, whose output can be redrawn."""
    shell = sys.modules.get("IPython")
    kernel = shell.get_ipython() if shell is not None else None
    return kernel is not None and hasattr(kernel, "kernel")


def _view(handle: Handle, progress: bool | None) -> View | None:
    paths = [run.path for run in handle.runs]
    if progress is False:
        return None
    if in_notebook():
        return NotebookView(paths, handle.until)
    if progress or sys.stderr.isatty():
        return live_view(paths, handle.until, sys.stderr, launched=True)
    return None


class NotebookView:
    """The sessions' table and the learning curve in one output cell, redrawn about once a second."""

    def __init__(self, sessions: Sequence[Path], until: int | None = None) -> None:
        self._labels = short_labels(sessions)
        self._sessions = list(sessions)
        self._followers = [Follower(path, until, True) for path in sessions]
        self._shown: Any = None
        self._frames = -1
        self._drawn = float("-inf")

    def __enter__(self) -> Self:
        self.refresh()
        return self

    def __exit__(self, *exception: object) -> None:
        self.refresh(last=True)

    def refresh(self, last: bool = False) -> list[SessionStatus]:
        """Redraw the cell if frames were played since the last time, at most once in `REDRAW_SECONDS`."""
        statuses = [follower.look() for follower in self._followers]
        frames = sum(status.frames for status in statuses)
        due = frames != self._frames and time.monotonic() - self._drawn >= REDRAW_SECONDS
        if due or last:
            self._frames, self._drawn = frames, time.monotonic()
            self._draw("\n".join(live_lines(self._labels, statuses, 100)))
        return statuses

    def _draw(self, table: str) -> None:
        from html import escape

        from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

        from operant.report.plots import curve_svg

        picture = curve_svg(self._sessions[0].parent, CURVE_METRIC)
        content = HTML(f"<pre>{escape(table)}</pre>{picture}")
        if self._shown is None:
            self._shown = display(content, display_id=True)
        else:
            self._shown.update(content)
