"""The one object an engine talks to while it trains.

    with run.session() as session:
        ...load session.latest.path if there is one...
        while not session.done(at):
            ...one update; at = Progress(..., seconds=session.seconds())...
            if session.due("log", at):
                session.log(at, {...})
            if session.due("save", at):
                session.save(at, write)

It holds the run's lock, answers Ctrl-C, and keeps logs and checkpoints so consistent that a kill at
any moment loses nothing but time.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from operant.errors import OperantError, RunError, StoppedError
from operant.registry import Origin, changed, origin
from operant.run.checkpoint import Checkpoint, link_newest_and_best, prune, publish
from operant.run.cost import CostAccount
from operant.run.disk import disk_full, disk_guard, is_full, write_json
from operant.run.episode import Episode
from operant.run.journal import Journal
from operant.run.layout import (
    ANCHORS_FILE,
    EPISODES_FILE,
    LOCK_FILE,
    METRICS_FILE,
    RESERVE_FILE,
    shown,
)
from operant.run.lock import RunLock
from operant.run.metrics import JsonLines
from operant.run.phase import Phase, write_phase
from operant.run.progress import Progress
from operant.run.provenance import add_fact, capture
from operant.run.recovery import recover, tell_lost_rows
from operant.run.redaction import redact
from operant.run.requests import take_requests
from operant.run.schedule import Kind, Schedule
from operant.run.seeding import Seeds
from operant.run.stop import StopRequest

if TYPE_CHECKING:
    from operant.run.run import Run

RESERVE_BYTES = 1 << 16


class AppendOnlyLog(Protocol):
    """A log of an engine's own that is never cut back; any thread may add to it."""

    path: Path

    @property
    def offset(self) -> int:
        """Where the file ends."""
        ...

    def sync(self) -> None:
        """Force the file to the disk."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class Session:
    """One attempt at training a run, from the newest good checkpoint to `until` or the full budget.

    `latest` is the checkpoint to load at the start, and then the last one saved. The loop calls
    `due` once per kind and update, `save` last, so that a resumed run is due at the same frames.
    Sessions of one process share one `stop`, which the caller then opens.
    """

    def __init__(self, run: Run, until: int | None = None, stop: StopRequest | None = None) -> None:
        meta = run.spec["meta"]
        # An environment may change the working directory under us.
        self.run = replace(run, path=run.path.absolute())
        self.seeds = Seeds(run.seed)
        self.latest: Checkpoint | None = None
        self.anchors: dict[str, float] = {}
        self._schedule = Schedule(meta, run.max_frame, until)
        self._keep = int(meta["keep_checkpoints"])
        self._lock = RunLock(self.run.path / LOCK_FILE)
        self._stop = stop or StopRequest()
        self._shares_stop = stop is not None
        self._price: float | None = meta.get("price_per_hour")
        self._journal: Journal | None = None
        self._account: CostAccount | None = None
        self._logs: list[JsonLines] = []
        self._uncut: list[AppendOnlyLog] = []
        self._frames = 0
        self._phase: Phase | None = None

    def __enter__(self) -> Session:
        with disk_guard(self.run.path, self.run.path):
            self._lock.acquire()
        if not self._shares_stop:
            self._stop.__enter__()
        self._stop.guard(self._may_end_now)
        try:
            with disk_guard(self.run.path, self.run.path):
                self._begin()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as cleanup:
            cleanup.callback(self._lock.release)
            cleanup.callback(self._stop.unguard, self._may_end_now)
            if not self._shares_stop:
                cleanup.callback(self._stop.__exit__, kind, error, trace)
            for file in (*self._logs, *self._uncut, self._journal):
                if file is not None:
                    cleanup.callback(file.close)
            if self._account is not None:
                cleanup.callback(self._account.close)
            self._end(error)

    def seconds(self) -> float:
        """Time spent training, over all attempts as far as checkpoints kept them."""
        return self._seconds_before + time.perf_counter() - self._started

    @property
    def stop_requested(self) -> bool:
        """Whether the user or the machine asked for an end."""
        return self._stop.requested

    @contextmanager
    def phase(self, name: str) -> Iterator[Callable[[int, int], None]]:
        """Say what is done while no rows come; call what is given with how many of how many are done.

        Where nothing was trained since the last checkpoint, a request to stop ends the session at once, by a
        `KeyboardInterrupt` from within.
        """
        outer, phase = self._phase, Phase(name, self._nothing_unsaved())
        self._show_phase(phase)

        def advance(done: int, total: int) -> None:
            self._show_phase(replace(phase, done=done, total=total))

        try:
            self._stop.obey()
            yield advance
        finally:
            self._show_phase(outer)

    def due(self, kind: Kind, at: Progress) -> bool:
        """Whether it is time to log, evaluate or save, by the `Schedule`."""
        self._frames = at.frames
        if kind == "save":
            self._hear_requests()
        return self._schedule.due(kind, at.frames, self._stop.requested)

    def next_due(self, frames: int) -> int:
        """The frame from which on more is due than a metric row: until then a loop need not ask for the rest."""
        return self._schedule.next_due(frames)

    def done(self, at: Progress) -> bool:
        """Whether to leave the loop: the goal is reached or a stop was requested."""
        self._advance(at)
        return self._schedule.done(at.frames, self._stop.requested)

    def log(self, at: Progress, values: Mapping[str, Any]) -> None:
        """Write a metric row, visible to other processes at once. Leave out what has no value yet."""
        self._advance(at)
        if self._lock.lost:
            raise self._lost_lock()
        lost = self._metrics.append({**at.as_dict(), **values})
        self._episodes.flush()
        self._metrics.flush()
        if lost:
            self._tell_not_finite(at, lost)

    def episode(self, episode: Episode) -> None:
        """Keep an episode; it is written with the next metric row or checkpoint."""
        lost = self._episodes.append(episode.as_dict())
        if lost:
            self._tell_not_finite(episode.at, lost)

    def save(self, at: Progress, write: Callable[[Path], object], score: float | None = None) -> Checkpoint:
        """Publish a checkpoint that `write` fills; the logs up to here belong to it.

        Saving again at the same frames replaces the checkpoint, for instance to include the final
        evaluation.
        """
        self._advance(at)
        if not self._lock.is_mine():
            raise self._lost_lock()
        logs = [*self._logs, *self._uncut]
        offsets = {log.path.name: log.offset for log in logs}
        for log in logs:
            log.sync()
        self.latest = publish(self.run.checkpoints, at, write, score, offsets)
        self._schedule.saved(at.frames)
        if self._account is not None:
            self._account.count()
        with disk_guard(self.run.checkpoints, self.run.path):
            link_newest_and_best(self.run.checkpoints)
            prune(self.run.checkpoints, self._keep)
        return self.latest

    def anchor(self, name: str, value: float) -> None:
        """Keep a reference score, such as that of random actions, to normalise others by."""
        self.anchors[name] = float(value)
        file = self.run.path / ANCHORS_FILE
        with disk_guard(file, self.run.path):
            write_json(file, self.anchors)

    def note_offsets_of(self, log: AppendOnlyLog) -> None:
        """Let checkpoints say how long this log was, and close it with the session. A resume leaves it as it is."""
        if self.latest is not None:
            tell_lost_rows(log.path, log.offset, self.latest, self.event)
        self._uncut.append(log)

    def use_gpus(self, count: int) -> None:
        """Say on how many GPUs the session computes, for the account of its cost."""
        if self._account is not None:
            self._account.use_gpus(count)

    def event(self, kind: str, message: str) -> None:
        """Report something to the user: a row in the events, a line in the log and on the terminal."""
        if self._journal is not None:
            self._journal.event(kind, message, None if self._account is None else self._account.at)

    def _begin(self) -> None:
        """Take stock of what earlier attempts left, and open this one."""
        run, attempt = self.run, self.run.attempts + 1
        run.record(state="running", error=None, attempts=attempt)
        write_phase(run.path, None)
        take_requests(run.path)  # those that came for an earlier attempt
        (run.path / RESERVE_FILE).write_bytes(bytes(RESERVE_BYTES))
        self._journal = Journal(run.path, attempt)
        self._capture_provenance(attempt)
        self._tell_changed_parts()
        self._metrics = JsonLines(run.path / METRICS_FILE)
        self._episodes = JsonLines(run.path / EPISODES_FILE)
        self._logs = [self._metrics, self._episodes]
        self.latest = recover(run.path, attempt, self._keep, self._logs, self.event)
        self.anchors = self._read_anchors()
        start = self.latest.at if self.latest else Progress()
        self._frames = start.frames
        self._schedule.start(start.frames, is_saved=self.latest is not None)
        self._not_finite: set[str] = set()
        self._seconds_before = start.seconds
        self._started = time.perf_counter()
        self._account = CostAccount(run.path, attempt, start, self._price, self._lock.is_mine)

    def _advance(self, at: Progress) -> None:
        self._frames = at.frames
        if self._account is not None:
            self._account.at = at

    def _tell_changed_parts(self) -> None:
        """Where a file of the user's own algorithm, network or environment is another one than before, say so."""
        before: list[Origin] = self.run.document.get("parts", [])
        for line in changed(before):
            self.event("parts", line)
        if before:
            self.run.record(parts=[origin(part["module"]) or part for part in before])

    def _hear_requests(self) -> None:
        asked = take_requests(self.run.path)
        self._schedule.save_requested |= "save" in asked
        if "stop" in asked and not self._stop.requested:
            self._stop.requested = True
            self.event("stop", "a stop was requested; the session saves and ends")

    def _show_phase(self, phase: Phase | None) -> None:
        self._phase = phase
        write_phase(self.run.path, phase)

    def _nothing_unsaved(self) -> bool:
        """Whether an end now would lose no update."""
        return self._schedule.is_saved(self._frames)

    def _may_end_now(self) -> bool:
        return self._phase is not None and self._nothing_unsaved()

    def _capture_provenance(self, attempt: int) -> None:
        """Training is worth more than its record: only a full disk stops it here."""
        try:
            capture(self.run.path, attempt, sys.orig_argv, {"session": self.run.seed})
        except OSError as error:
            if is_full(error):
                raise
            self.event("provenance", f"what ran could not be recorded in full: {error}")

    def record_fact(self, name: str, value: str) -> str | None:
        """Add a fact to this attempt's provenance; what the attempt before it had said of that, if anything."""
        try:
            return add_fact(self.run.path, self.run.attempts, name, value)
        except (OSError, ValueError) as error:
            self.event("provenance", f"{name} could not be recorded: {error}")
            return None

    def _end(self, error: BaseException | None) -> None:
        """Say in run.json how it ended; a full disk is raised as what it is."""
        if not self._lock.is_mine():
            # The directory belongs to somebody else now, so not another byte.
            if error is None:
                raise self._lost_lock()
            return
        write_phase(self.run.path, None)
        # Room kept for this moment: with a full disk even the last words would not fit.
        (self.run.path / RESERVE_FILE).unlink(missing_ok=True)
        failure = error
        try:
            for log in self._logs:
                log.sync()
            if failure is None or isinstance(failure, KeyboardInterrupt | StoppedError):
                self.run.record(
                    state="done" if failure is None and self._frames >= self._schedule.budget else "stopped"
                )
                return
        except (OSError, OperantError) as unwritten:
            failure = failure or unwritten
        if is_full(failure):
            place = getattr(failure, "filename", None) or self.run.path
            failure = disk_full(Path(place), self.run.path)
        self._record_failure(failure)
        if failure is not error:
            raise failure from error

    def _record_failure(self, failure: BaseException) -> None:
        """Keep the cause and the trace; the failure itself must reach the caller even if they cannot be kept."""
        text = str(failure) if isinstance(failure, OperantError) else f"{type(failure).__name__}: {failure}"
        with suppress(OSError, OperantError):
            self.run.record(state="failed", error=redact(text))
        with suppress(OSError, OperantError):
            if self._journal is not None:
                self._journal.write("".join(traceback.format_exception(failure)))
                self.event("failed", text)

    def _lost_lock(self) -> RunError:
        place = shown(self.run.path)
        return RunError(
            "the lock is no longer ours: the directory was moved, or another process took the run over",
            place=place,
            remedy=f"`operant show {place}`",
        )

    def _read_anchors(self) -> dict[str, float]:
        file = self.run.path / ANCHORS_FILE
        try:
            return dict(json.loads(file.read_bytes()))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError):
            self.event("damaged", f"{shown(file)} cannot be read; the reference scores are measured again")
            return {}

    def _tell_not_finite(self, at: Progress, keys: tuple[str, ...]) -> None:
        """One alert per column and attempt: the first is news, the rest is in the rows as nulls."""
        for key in keys:
            if key not in self._not_finite:
                self._not_finite.add(key)
                self.event("not_finite", f"{key} is not a finite number at frame {at.frames:,}; written as null")
