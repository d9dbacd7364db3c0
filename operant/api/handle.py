"""A trial that trains in the background, in processes of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from operant.api.events import Observer, Row
from operant.api.runs import Session, Trial
from operant.errors import OperantError, RunError
from operant.launch.budget import share
from operant.launch.local import LocalLauncher
from operant.launch.sync_process import start_sync
from operant.launch.trial import Outcome, SessionJobs
from operant.run.layout import shown
from operant.run.requests import request
from operant.run.run import Run
from operant.spec.stored import stored_trackers
from operant.trackers.start import TrackerProcesses

POLL_SECONDS = 0.2
TRACKING_SECONDS = 5.0
"""How long the end of training waits for trackers; after that they go on in the background."""


class Handle:
    """Sessions that train side by side within the machine's cores.

    They stop by themselves, after saving, when the process that started them ends. With `meta.sync` the handle runs
    until the last upload has ended; `uploading` is its URL from the end of the sessions on. `before_upload` is called
    when the sessions have ended, for files that the last upload is to have.
    """

    def __init__(
        self, runs: Sequence[Run], until: int | None = None, *, before_upload: Callable[[], object] = lambda: None
    ) -> None:
        from operant.engines import trains_together
        from operant.spec.stored import stored

        first = runs[0]
        self.together = len(runs) > 1 and trains_together(stored(first.spec))
        processes = first.spec["meta"].get("processes", 1)
        self.workers = share(len(runs), first.threads, processes=processes).workers
        self.until = until
        self._jobs = SessionJobs(runs, LocalLauncher(), self.workers, until=until, together=self.together)
        self.tracking: list[str] = []
        """Once training has ended: the trackers that go on in the background."""
        self._problems: list[str] = []
        self._trackers = self._start_trackers()
        self.stop_requests = 0
        self._before_upload = before_upload
        self.uploading: str | None = None
        self._sync = start_sync(first.path.parent.parent, first.spec["meta"])
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._drive, name=f"train {shown(first.path.parent)}", daemon=True)
        self._thread.start()

    @property
    def runs(self) -> list[Run]:
        """The run directories of the sessions."""
        return self._jobs.runs

    @property
    def path(self) -> Path:
        """The folder of the experiment."""
        return self.runs[0].path.parent.parent

    @property
    def trial(self) -> Trial:
        """The trial, to be read while it trains."""
        return Trial(self.runs[0].path.parent)

    @property
    def sessions(self) -> list[Session]:
        """The sessions that this handle trains."""
        return [Session(run.path) for run in self.runs]

    @property
    def running(self) -> bool:
        """Whether a session still trains or waits to."""
        return self._thread.is_alive()

    def tracker_news(self) -> list[str]:
        """What went wrong with trackers since the last call, in one line each; it never touches the run."""
        problems, self._problems = self._problems, []
        return [*problems, *self._trackers.news()]

    def rows(self) -> Iterator[Row]:
        """Every metric row of every session as it comes, to the end of training."""
        return (event for event in self.observe() if isinstance(event, Row))

    def observe(self) -> Observer:
        """Rows, episodes, checkpoints and changes of state as they come, to the end of training."""
        return Observer(self.sessions, over=lambda: not self.running)

    def save(self) -> None:
        """Ask every session for a checkpoint after its present update."""
        for run in self.runs:
            request(run.path, "save")

    def stop(self) -> None:
        """Ask every session to finish its update, save and end; called again, end them now."""
        self.stop_requests += 1

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds; whether it has come."""
        self._thread.join(timeout)
        return not self.running

    def wait(self, timeout: float | None = None, tick: Callable[[], object] = lambda: None) -> Trial:
        """The trial once every session has ended; `RunError` if one failed, `TimeoutError` after `timeout` seconds.

        `tick` is called several times a second meanwhile.
        Ctrl-C stops the sessions as `stop` does and is raised again when they have ended.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        interrupted = False
        while self.running:
            try:
                tick()
                self.join(POLL_SECONDS)
            except KeyboardInterrupt:
                interrupted = True
                self.stop()
            if deadline is not None and time.monotonic() > deadline and self.running:
                raise TimeoutError(f"{shown(self.path)} still trains after {timeout:g} s")
        if interrupted:
            raise KeyboardInterrupt
        self.raise_failure()
        return self.trial

    def outcomes(self) -> list[Outcome]:
        """How each session's process ended."""
        if self._fault is not None:
            raise self._fault
        return self._jobs.outcomes()

    def raise_failure(self) -> None:
        """`RunError` with the cause and the log of the first session that failed, if one did."""
        failed = [outcome for outcome in self.outcomes() if outcome.verdict == "failed"]
        if failed:
            first = failed[0]
            raise RunError(
                f"{len(failed)} of {len(self.runs)} sessions failed; the first: {first.cause}",
                place=shown(first.run.path),
                remedy=f"its log is {shown(first.log) if first.log else 'missing'}; operant resume {shown(self.path)}",
            )

    def _start_trackers(self) -> TrackerProcesses:
        try:
            return TrackerProcesses(self.runs, stored_trackers(self.runs[0].spec))
        except OperantError as problem:
            self._problems.append(f"track: {problem.cause}")
            return TrackerProcesses(self.runs, ())

    def _drive(self) -> None:
        try:
            while self._jobs.busy:
                self._jobs.stop(self.stop_requests)
                self._jobs.advance()
                if self._sync is not None:
                    self._sync.tend()
                self._trackers.advance()
                if self._jobs.busy:
                    time.sleep(POLL_SECONDS)
            self._before_upload()
            self._finish_upload()
        except BaseException as fault:
            self._fault = fault
        finally:
            self.tracking = self._trackers.finish(TRACKING_SECONDS)

    def _finish_upload(self) -> None:
        """Wait for the last upload; a stop that is asked for now leaves it to go on by itself."""
        if self._sync is None:
            return
        asked, self.uploading = self.stop_requests, self._sync.url
        self._sync.finish(leave=lambda: self.stop_requests > asked)
        self.uploading = None

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        """Wait for the end; an exception inside stops the sessions first."""
        if kind is not None:
            self.stop()
        self.join()

    def __repr__(self) -> str:
        return f"Handle({shown(self.path)}, {'running' if self.running else self.trial.state})"
