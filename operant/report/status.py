"""Where a session stands right now, read from the growing end of its files."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from operant.errors import OperantError, UsageError
from operant.report.language_status import Sample, SampleReader, signals_of
from operant.report.tail import Tail
from operant.run import layout
from operant.run.layout import log_path
from operant.run.phase import Phase, read_phase
from operant.run.run import Run

STARTING = "starting"
RATE_WINDOW_SECONDS = 20.0


@dataclass(frozen=True)
class SessionStatus:
    """One session at one moment. `rate` is in frames per training second; None is "not known yet".

    `phase` names what it does while no rows come, and `phase_text` says so with the seconds. A language run
    has `signals` (KL, entropy, length) and the newest `sample`.
    """

    state: str
    frames: int
    total: int | None
    rate: float | None
    train_return: float | None
    eval_score: float | None
    error: str | None = None
    phase: str | None = None
    phase_text: str | None = None
    signals: dict[str, float] = field(default_factory=dict)
    sample: Sample | None = None

    @property
    def doing(self) -> str:
        """The state for people; of a session that is busy with something else than training, what and for how long."""
        return self.phase_text or self.state

    @property
    def share(self) -> float:
        """Progress from 0 to 1."""
        return min(1.0, self.frames / self.total) if self.total else 0.0

    @property
    def eta(self) -> float | None:
        """Seconds to go at the present rate, while running."""
        if self.state != "running" or not self.rate or self.total is None:
            return None
        return max(0, self.total - self.frames) / self.rate

    @property
    def over(self) -> bool:
        """Whether nothing more will come without a new attempt."""
        return self.state in ("done", "stopped", "failed")


class Follower:
    """Follows one session directory, which need not exist yet, up to `until` frames (default: its budget).

    `launched` says that the caller has just started the session: until a new attempt shows itself, an
    earlier attempt's end reads as "starting".

    The rate is the slope of frames over training seconds in the rows that appear while it follows, so
    after a resume only new frames count. Before there are two such rows it is what the engine measured.
    """

    def __init__(self, path: Path, until: int | None = None, launched: bool = False) -> None:
        self.path = path
        self._until = until
        self._awaited = _attempts(path) if launched else None
        self._tail = Tail(path / layout.METRICS_FILE)
        self._recent: list[tuple[float, int]] = []
        self._newest: dict[str, Any] = {}
        self._submitted: float | None = None
        self._samples = SampleReader(path)

    def look(self) -> SessionStatus:
        """Read what is new and say where the session stands."""
        rows = self._tail.read()
        if self._tail.is_history:
            self._forget()
        for row in rows:
            self._take(row)
        if self._tail.is_history:
            self._recent = self._recent[-1:]
        state, total, error = self._run_file()
        score = self._newest.get("final/score", self._newest.get("eval/score"))
        phase = self._phase(state)
        signals = signals_of(self._newest)
        return SessionStatus(
            state=state,
            frames=self._frames(),
            total=total,
            rate=self._rate(),
            train_return=self._newest.get("train/return"),
            eval_score=score,
            error=error,
            phase=phase and phase.name,
            phase_text=phase and phase.text(),
            signals=signals,
            sample=self._samples.read() if signals else None,
        )

    def _phase(self, state: str) -> Phase | None:
        """What the session says that it does; of one whose process has only just started, that it starts."""
        if state == "running":
            return read_phase(self.path)
        if state != STARTING or not log_path(self.path, (self._awaited or 0) + 1).exists():
            return None
        self._submitted = self._submitted or time.time()
        return Phase(STARTING, interruptible=True, since=self._submitted)

    def _take(self, row: dict[str, Any]) -> None:
        frames, seconds = row.get("frames"), row.get("seconds")
        if isinstance(frames, int) and frames < self._frames():
            self._forget()
        self._newest.update({key: value for key, value in row.items() if value is not None})
        if isinstance(frames, int) and isinstance(seconds, int | float):
            self._recent.append((float(seconds), frames))
        while len(self._recent) > 2 and self._recent[-1][0] - self._recent[1][0] >= RATE_WINDOW_SECONDS:
            self._recent.pop(0)

    def _forget(self) -> None:
        """Rows were cut back by a resume: what they said is no longer so."""
        self._recent.clear()
        self._newest.clear()

    def _frames(self) -> int:
        return int(self._newest.get("frames", 0))

    def _rate(self) -> float | None:
        if not self._recent:
            return None
        (first_seconds, first_frames), (last_seconds, last_frames) = self._recent[0], self._recent[-1]
        if last_seconds > first_seconds and last_frames > first_frames:
            return (last_frames - first_frames) / (last_seconds - first_seconds)
        return self._newest.get("perf/frames_per_second")

    def _run_file(self) -> tuple[str, int | None, str | None]:
        """State, target frames and error; a directory that is not a run yet is starting."""
        try:
            run = Run.open(self.path)
            state, attempts, error = run.state, run.attempts, run.error
        except UsageError:
            return STARTING, self._until, None
        except OperantError as error:
            return "failed", self._until, error.cause
        total = self._until or run.spec.get("env", {}).get("max_frame")
        if state == "new" or (state in ("stopped", "failed") and attempts == self._awaited):
            return STARTING, total, None
        return state, total, error


def _attempts(path: Path) -> int:
    """Attempts so far; none in a directory that is not a run yet."""
    try:
        return Run.open(path).attempts
    except OperantError:
        return 0
