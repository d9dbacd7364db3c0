"""Watch a search while it runs: the ranking and the best trial's curve in a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Self, TextIO

from operant.report.formatting import duration
from operant.report.search_table import TrialRow, ranked, read_search, render_search, search_rows, settings_text

REDRAW_SECONDS = 1.0
# Looking at thousands of trials takes time; it may take one part in so many.
SHARE = 20
CURVE_METRIC = "eval/score"
MOST_ROWS = 16


def search_view(place: Path, stream: TextIO, *, plain: bool) -> SearchLines | SearchTable:
    """The view that suits the stream."""
    return SearchLines(place, stream) if plain or not stream.isatty() else SearchTable(place, stream)


class SearchLines:
    """A line when a trial begins, reaches a rung, or ends."""

    def __init__(self, place: Path, stream: TextIO) -> None:
        self._place = place
        self._stream = stream
        self._told: dict[int, tuple[int, str]] = {}
        self._next = 0.0
        self._rungs: list[int] = (read_search(place) or {}).get("rungs", [])

    def __enter__(self) -> Self:
        self._told = {row.trial: (row.rung, row.state) for row in search_rows(self._place)}
        return self

    def __exit__(self, *exception: object) -> None:
        self.refresh(now=True)

    def say(self, line: str) -> None:
        """Print a line about what happens."""
        print(line, file=self._stream, flush=True)

    def refresh(self, now: bool = False) -> None:
        """Print the lines that are due; looks at the disk about once a second."""
        begun = time.monotonic()
        if begun < self._next and not now:
            return
        for row in search_rows(self._place):
            said = self._told.get(row.trial)
            if said is None:
                self.say(self._begun(row))
            if row.rung > (said or (self._rung_at(row.forked_at), ""))[0] or (
                said and row.state == "failed" != said[1]
            ):
                self.say(self._reached(row))
            self._told[row.trial] = (row.rung, row.state)
        self._next = _next_look(begun)

    def _begun(self, row: TrialRow) -> str:
        origin = "" if row.parent is None else f"fork of trial {row.parent} at {row.forked_at:,} frames, "
        place = "" if row.replaces is None else f"in place of trial {row.replaces}, "
        return f"trial {row.trial}: {origin}{place}{settings_text(row.settings)}"

    def _rung_at(self, frames: int) -> int:
        """How many rungs a session has reached with so many frames."""
        return sum(rung <= frames for rung in self._rungs)

    def _reached(self, row: TrialRow) -> str:
        score = "no score" if row.score is None else f"score {row.score.text()}"
        how = "failed" if row.state == "failed" else f"rung {row.rung} of {len(self._rungs)}"
        return f"trial {row.trial}: {how}, {row.frames:,} frames, {score}"


class SearchTable:
    """The ranking, redrawn about once a second, above the curve of the best trial."""

    def __init__(self, place: Path, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._place = place
        self._begun = time.monotonic()
        self._next = 0.0
        self._console = Console(file=stream, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False)
        self._rungs: list[int] = (read_search(place) or {}).get("rungs", [])

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.update("", refresh=True)
        self._live.stop()

    def say(self, line: str) -> None:
        """Print a line above the table."""
        self._console.print(line, markup=False)

    def refresh(self, now: bool = False) -> None:
        """Redraw what has changed."""
        begun = time.monotonic()
        if begun < self._next and not now:
            return
        self._live.update(self._text(begun - self._begun), refresh=True)
        self._next = _next_look(begun)

    def _text(self, seconds: float) -> Any:
        from rich.text import Text

        from operant.report.curve import draw_curve
        from operant.report.read import read_trial

        rows = search_rows(self._place)
        states = [row.state for row in rows]
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        lines = [*render_search(rows, self._rungs, MOST_ROWS), "", f"{counts}; {duration(seconds)}"]
        best = ranked(rows)
        if best and self._console.height > len(lines) + 14:
            title = f"{CURVE_METRIC} of trial {best[0].trial}, the best so far"
            lines += ["", draw_curve(read_trial(best[0].path).curves(CURVE_METRIC), title=title)]
        return Text("\n".join(lines), no_wrap=True, overflow="crop")


def _next_look(begun: float) -> float:
    """When to look again after a look that began then and ends now."""
    now = time.monotonic()
    return begun + max(REDRAW_SECONDS, SHARE * (now - begun))
