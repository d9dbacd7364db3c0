"""Watch sessions while they run: a table that redraws in a terminal, plain lines anywhere else.

Both views only read run directories, so they can be opened and closed at will, for one session or
fifty. `refresh()` is cheap; call it a few times a second.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, TextIO

from operant.report.formatting import carries_unicode, clock, columns, compact, duration, score
from operant.report.language_status import signals_text
from operant.report.status import STARTING, Follower, SessionStatus

HEADINGS = ["session", "progress", "frames", "per s", "to go", "return", "eval", "state"]
RIGHT = {2, 3, 4, 5, 6}
WIDEST_BAR, NARROWEST_BAR = 24, 4
SHORTEST_PAUSE = 1.0
FIRST_PAUSE, LONGEST_PAUSE = 10.0, 300.0
STATE_STYLES = {"running": "cyan", "done": "green", "stopped": "yellow", "failed": "red", STARTING: "dim"}


class View(Protocol):
    """What `live_view` gives back: enter it, refresh it now and then, leave it."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
    def refresh(self) -> list[SessionStatus]:
        """Read what is new, show it and return it, in the order of the sessions."""
        ...


def live_view(
    sessions: Sequence[Path], until: int | None = None, stream: TextIO | None = None, launched: bool = False
) -> View:
    """The view that suits the stream (default: standard output).

    `until` is a target below the budget; `launched` says that the sessions were started just now, so
    that the end of an earlier attempt is not taken for news.
    """
    target: TextIO = stream or sys.stdout
    view = LiveView if target.isatty() else PlainView
    return view(sessions, until, target, launched)


def labels(sessions: Sequence[Path]) -> list[str]:
    """The shortest path endings that identify the sessions: `session_0`, or `trial_001/session_0`."""
    for parts in (1, 2, 3):
        names = ["/".join(path.parts[-parts:]) for path in sessions]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in sessions]


class LiveView:
    """One redrawn line per session: bar, frames, rate, time to go, returns, state."""

    def __init__(
        self,
        sessions: Sequence[Path],
        until: int | None = None,
        stream: TextIO | None = None,
        launched: bool = False,
    ) -> None:
        from rich.console import Console
        from rich.live import Live

        self._labels = labels(sessions)
        self._fill = "█░" if carries_unicode(stream or sys.stdout) else "#."
        self._followers = [Follower(Path(path), until, launched) for path in sessions]
        self._live = Live(console=Console(file=stream, highlight=False), auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start()
        self.refresh()
        return self

    def __exit__(self, *exception: object) -> None:
        self.refresh()
        self._live.stop()

    def refresh(self) -> list[SessionStatus]:
        """Redraw the table."""
        statuses = [follower.look() for follower in self._followers]
        lines = live_lines(self._labels, statuses, self._live.console.width, self._fill)
        self._live.update(_styled(lines, statuses), refresh=True)
        return statuses


def _styled(lines: Sequence[str], statuses: Sequence[SessionStatus]) -> Any:
    """The lines with each session's state in colour, which only helps: the state is a word."""
    from rich.text import Text

    texts = [Text(line) for line in lines]
    texts[0].stylize("bold")
    for text, status in zip(texts[1:], statuses, strict=False):
        text.stylize(STATE_STYLES.get(status.state, ""), len(text) - len(status.doing))
    return Text("\n").join(texts)


class PlainView:
    """A line per session when another tenth is done, when the state or the phase changes, and after a silence.

    The silence allowed is 10 s at first and doubles up to 5 minutes, so that an hour's log stays readable.
    """

    def __init__(
        self,
        sessions: Sequence[Path],
        until: int | None = None,
        stream: TextIO | None = None,
        launched: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream or sys.stdout
        self._clock = clock
        self._reporters = [
            _Reporter(label, Follower(Path(path), until, launched))
            for label, path in zip(labels(sessions), sessions, strict=True)
        ]

    def __enter__(self) -> Self:
        self.refresh()
        return self

    def __exit__(self, *exception: object) -> None:
        self.refresh()

    def refresh(self) -> list[SessionStatus]:
        """Print the lines that are due."""
        now = self._clock()
        for reporter in self._reporters:
            line = reporter.line_due(now)
            if line is not None:
                print(line, file=self._stream, flush=True)
        return [reporter.status for reporter in self._reporters]


class _Reporter:
    """Decides when a session is worth a line."""

    def __init__(self, label: str, follower: Follower) -> None:
        self.status = follower.look()
        self._label = label
        self._follower = follower
        self._told: SessionStatus | None = None
        self._told_at = 0.0
        self._pause = FIRST_PAUSE
        self._phase: str | None = None
        self._phase_at = 0.0
        self._told_phase: str | None = None

    def line_due(self, now: float) -> str | None:
        self.status = self._follower.look()
        if not self._due(now):
            return None
        self._told, self._told_at, self._told_phase = self.status, now, self.status.phase
        lines = [f"{self._label} {status_text(self.status)}"]
        if self.status.sample and not self.status.over:
            lines.append(f"  {self.status.sample.line()}")
        return "\n".join(lines)

    def _due(self, now: float) -> bool:
        if self._told is None or self._told.state != self.status.state:
            return True
        if self._is_new_phase(now):
            return True
        if self.status.over:
            return False
        silence = now - self._told_at
        if _tenths(self.status) > _tenths(self._told) and silence >= SHORTEST_PAUSE:
            self._pause = FIRST_PAUSE
            return True
        if silence < self._pause:
            return False
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return True

    def _is_new_phase(self, now: float) -> bool:
        """Whether the session has been busy with something untold for long enough to be worth a line."""
        phase = self.status.phase
        if phase != self._phase:
            self._phase, self._phase_at = phase, now
        return phase is not None and phase != self._told_phase and now - self._phase_at >= SHORTEST_PAUSE


def _tenths(status: SessionStatus) -> int:
    """Whole tenths of the budget that are done."""
    return int(10 * status.share + 1e-9)


def status_text(status: SessionStatus) -> str:
    """One line without its name: `40 %  20,480/51,200 frames  5.1k/s  6 s to go  return 123.4  running`."""
    if status.state == STARTING and not status.frames:
        return status.phase_text or "waiting to start ..."
    total = "" if status.total is None else f"/{status.total:,}"
    parts = [_percent(status), f"{status.frames:,}{total} frames"]
    if status.rate:
        parts.append(f"{compact(status.rate)}/s")
    if status.eta is not None:
        parts.append(f"{duration(status.eta)} to go")
    if status.train_return is not None:
        parts.append(f"return {score(status.train_return)}")
    if status.eval_score is not None:
        parts.append(f"eval {score(status.eval_score)}")
    if status.signals:
        parts.append(signals_text(status.signals))
    parts.append(status.doing if status.error is None else f"{status.state}: {_first_line(status.error)}")
    return "  ".join(parts)


def live_lines(names: Sequence[str], statuses: Sequence[SessionStatus], width: int, fill: str = "█░") -> list[str]:
    """The lines of the live view in a terminal of that width: a heading, a line per session, then errors.

    Below them the signals of language runs, and what one of them wrote last. A session's line ends with its state.
    The bar takes the room that is left, or goes when there is none.
    """
    bare = columns([HEADINGS, *(_cells(n, s) for n, s in zip(names, statuses, strict=True))], right=RIGHT)
    # As if every state were the longest word, so that the bar keeps its width when one changes.
    longest = max((len(s.doing) for s in statuses), default=0)
    taken = max(map(len, bare)) - longest + max(longest, len(STARTING))
    room = min(WIDEST_BAR, width - 2 - taken)
    bars = [_bar(status.share, room, fill) if room >= NARROWEST_BAR else "" for status in statuses]
    rows = [_cells(*row) for row in zip(names, statuses, bars, strict=True)]
    errors = [f"{n}: {_first_line(s.error)}" for n, s in zip(names, statuses, strict=True) if s.error is not None]
    return [*columns([HEADINGS, *rows], right=RIGHT), *errors, *_language_lines(names, statuses, width)]


def _language_lines(names: Sequence[str], statuses: Sequence[SessionStatus], width: int) -> list[str]:
    signals = [f"{n}  {signals_text(s.signals)}" for n, s in zip(names, statuses, strict=True) if s.signals]
    written = [s.sample for s in statuses if s.sample and not s.over] or [s.sample for s in statuses if s.sample]
    return [*signals, *(sample.line(width) for sample in written[:1])]


def _cells(name: str, status: SessionStatus, bar: str = "") -> list[str]:
    total = "" if status.total is None else f"/{compact(status.total)}"
    return [
        name,
        f"{bar} {_percent(status)}" if bar else _percent(status),
        f"{compact(status.frames)}{total}",
        compact(status.rate) if status.rate else "-",
        "-" if status.eta is None else clock(status.eta),
        score(status.train_return),
        score(status.eval_score),
        status.doing,
    ]


def _bar(share: float, width: int, fill: str) -> str:
    done = int(share * width + 1e-9)
    return fill[0] * done + fill[1] * (width - done)


def _percent(status: SessionStatus) -> str:
    """Never 100 % before the budget is reached."""
    return f"{int(100 * status.share + 1e-9):3d} %"


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else text
