"""One tracker following one session: rows are sent, flushed, and then the position is written.

A kill between the flush and the position leaves rows in the store that the position does not know of. The next process
asks the store what it holds and sends the rest.
"""

from __future__ import annotations

import fcntl
import os
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from operant.errors import OperantError
from operant.registry import load
from operant.run.layout import TRACK_FOLDER, shown, timestamp
from operant.run.redaction import redact
from operant.run.run import Run
from operant.spec.settings.trackers import TrackerSpec
from operant.trackers.position import Mark, Position, PositionFile, State, file_stem
from operant.trackers.reader import batches, has_unfinished_videos, last_row
from operant.trackers.tracker import Batch, Held, Tracker

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 1.0, 60.0
LOCK_SECONDS = 15.0


class Follower:
    """Sends what one session writes. `look` is called again and again; a failure is told once and tried again later.

    `complete` says that everything the session wrote is in the store, and `gave_up` that it will not get there. Where
    another process sends the session, one that is `patient` comes after it: each rung of a search has a process, and
    that of the rung before may still be sending.
    """

    def __init__(self, settings: TrackerSpec, session: Path, *, patient: bool = False) -> None:
        self.session = session
        self._patient = patient
        self.complete = self.gave_up = False
        self._settings = settings
        self._file = PositionFile(session, settings.name)
        self._stored = self._file.read()
        self._position = self._stored
        self._tracker: Tracker | None = None
        self._held = Held()
        self._wait, self._not_before = FIRST_WAIT_SECONDS, 0.0
        self._lock = _Lock(session, settings.name)
        self.called_at: float | None = None
        """When the call into the tracker began that has not returned yet."""

    def look(self, last: bool) -> None:
        """Send what is new; with `last` no more will come, and a failure is final."""
        if self.complete or self.gave_up or (time.monotonic() < self._not_before and not last):
            return
        try:
            if self._is_ours(last):
                self._send(last)
            self._wait = FIRST_WAIT_SECONDS
        except Exception as problem:
            self._fail(problem, last)

    def tell_hang(self, seconds: float) -> None:
        """Record that a call has not returned for so long."""
        self._tell(f"{self._settings.name}: no answer for {seconds:g} s")

    def _is_ours(self, last: bool) -> bool:
        """Whether no other process sends the session; what one has sent until now is read once it does not."""
        if self._lock.is_held:
            return True
        is_ours = self._lock.acquire(wait=last and not self._patient)
        self._stored = self._position = self._file.read()
        if not is_ours and last and not self._patient:
            raise OperantError("another process tracks this session at this moment")
        return is_ours

    def _send(self, last: bool) -> None:
        run = Run.open(self.session)
        state = run.state
        self._rewind()
        if self._tracker is None and not self._is_new(state):
            self._finish(last, state)
            return
        tracker = self._tracker or self._open(run, rewound=False)
        pending = self._note_pending()
        sent = False
        for batch, position in batches(self.session, self._position, state, pending):
            missing = self._held.missing(self._wanted(batch))
            if missing:
                with self._calling():
                    tracker.log(missing)
                self._held.add(missing)
            self._position, sent = position, True
        if sent:
            self._flush(tracker)
        self._finish(last, state)

    def _finish(self, last: bool, state: str) -> None:
        """At the end, once nothing more can come."""
        if not last or has_unfinished_videos(self.session, self._position):
            return
        if self._tracker is not None:
            self._close(self._tracker, state)
        self._store("complete")
        self.complete = True
        self._lock.release()

    def _is_new(self, state: str) -> bool:
        """Whether there is anything to send, or something failed before."""
        pending = last_row(self.session, self._position)
        return next(batches(self.session, self._position, state, pending), None) is not None

    def _note_pending(self) -> Mark | None:
        """The row up to which is sent now; it is noted first, lest a kill leave the store ahead without a trace."""
        pending = last_row(self.session, self._position)
        if pending is not None:
            self._stored = replace(self._stored, pending=pending)
            self._file.write(self._stored)
        return pending

    def _open(self, run: Run, rewound: bool) -> Tracker:
        kind: Any = load(self._settings.TRACKER, "meta.track.name")
        tracker: Tracker = kind(self._settings, run)
        with self._calling():
            self._held = tracker.open(self._position.step, rewound)
        if self._held.anew:
            self._position = Position()
        self._tracker = tracker
        self._store(None)
        return tracker

    def _rewind(self) -> None:
        """Where a resume has cut rows off that were sent, go back to the last one that is still there."""
        back = self._position.rewound(self.session)
        if back is None:
            return
        if self._tracker is not None:
            self._close(self._tracker, "stopped")
        self._position = replace(back, videos=())
        tracker = self._open(Run.open(self.session), rewound=True)
        if not self._held.anew:
            self._flush(tracker)

    def _flush(self, tracker: Tracker) -> None:
        """Write the position once the store has everything."""
        with self._calling():
            is_stored = tracker.flush()
        if is_stored:
            self._store("following")

    def _close(self, tracker: Tracker, state: str) -> None:
        self._tracker = None
        with self._calling():
            tracker.close(state)
        self._stored = replace(self._stored, place=tracker.place)

    @contextmanager
    def _calling(self) -> Iterator[None]:
        self.called_at = time.monotonic()
        try:
            yield
        finally:
            self.called_at = None

    def _wanted(self, batch: Batch) -> Batch:
        """The batch without what the settings leave out."""
        wanted = {"all": lambda row: True, "eval": lambda row: row.get("split") != "train", "none": lambda row: False}
        episodes = [row for row in batch.episodes if wanted[self._settings.episodes](row)]
        return Batch(batch.step, batch.values, episodes, batch.videos if self._settings.videos else ())

    def _store(self, state: State | None) -> None:
        """Write how far the store has come; with None only where it is, for nothing new is sure."""
        place = self._tracker.place if self._tracker else self._stored.place
        base = replace(self._position, pending=None) if state else self._stored
        self._stored = replace(base, state=state or "following", error=None, place=place)
        self._file.write(self._stored)

    def _fail(self, problem: Exception, last: bool) -> None:
        """Tell the failure, and forget the tracker: the next one reads back what the store holds."""
        self._log(traceback.format_exc())
        self._tell(f"{self._settings.name}: {_line(problem)}")
        if self._tracker is not None:
            with suppress(Exception):
                self._close(self._tracker, "running")
        self._position = self._stored
        self.gave_up = last or isinstance(problem, OperantError)
        self._not_before = time.monotonic() + self._wait
        self._wait = min(2 * self._wait, LONGEST_WAIT_SECONDS)
        if self.gave_up:
            self._lock.release()

    def _tell(self, line: str) -> None:
        line = redact(line)
        if line != self._stored.error:
            self._log(f"{timestamp()} failed: {line}\n")
        self._stored = replace(self._stored, state="failed", error=line)
        # A full disk must not end the process that waits for room.
        with suppress(OSError):
            self._file.write(self._stored)

    def _log(self, text: str) -> None:
        with suppress(OSError), log_file(self.session, self._settings.name).open("a", encoding="utf-8") as log:
            log.write(redact(text))


class _Lock:
    """One process at a time sends a session to a tracker; the kernel frees the lock of one that was killed."""

    def __init__(self, session: Path, tracker: str) -> None:
        self._path = session / TRACK_FOLDER / f".{file_stem(tracker)}.lock"
        self._file: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether it is ours."""
        return self._file is not None

    def acquire(self, wait: bool) -> bool:
        """Take it, waiting for a while where another process is about to end; whether it is ours."""
        self._path.parent.mkdir(exist_ok=True)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        deadline = time.monotonic() + (LOCK_SECONDS if wait else 0.0)
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    os.close(file)
                    return False
                time.sleep(0.1)
            else:
                self._file = file
                return True

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def log_file(session: Path, tracker: str) -> Path:
    """Where a tracker's failures, and what its library prints, are kept."""
    return session / TRACK_FOLDER / f"{file_stem(tracker)}.log"


def _line(problem: Exception) -> str:
    """A failure in one line."""
    words = str(problem).strip().splitlines()
    first = words[0] if words else ""
    if isinstance(problem, OperantError):
        return f"{problem.cause}; {problem.remedy}" if problem.remedy else problem.cause
    return f"{type(problem).__name__}: {first}" if first else f"{type(problem).__name__} at {shown(__file__)}"
