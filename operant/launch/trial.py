"""The sessions of a trial as parallel jobs, within a budget of workers."""

from __future__ import annotations

import signal
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from operant.errors import EXIT_DONE, EXIT_FAILED, EXIT_STOPPED
from operant.launch.budget import cores_each
from operant.launch.launcher import Launcher, Resources, Ticket
from operant.run.layout import log_path
from operant.run.phase import read_phase
from operant.run.run import Run

_RESPONSE_SECONDS = 5.0
Verdict = Literal["done", "stopped", "failed"]


@dataclass(frozen=True)
class Outcome:
    """How one session's job ended. `code` is None for a session that was never started."""

    run: Run
    code: int | None
    log: Path | None
    stop_asked: bool

    @property
    def verdict(self) -> Verdict:
        """Done means that the job did what it was asked, up to `until` where one was given."""
        if self.code == EXIT_DONE:
            return "done"
        killed_on_request = self.stop_asked and self.code is not None and self.code < 0
        return "stopped" if self.code in (None, EXIT_STOPPED) or killed_on_request else "failed"

    @property
    def signal_name(self) -> str | None:
        """The signal that ended the job, if one did."""
        return signal.Signals(-self.code).name if self.code is not None and self.code < 0 else None

    @property
    def cause(self) -> str:
        """Why a failed session failed, in one line."""
        if self.signal_name == "SIGKILL":
            return "killed by SIGKILL; out of memory is the usual reason"
        if self.signal_name is not None:
            return f"killed by {self.signal_name}"
        recorded = (self.run.error or "").strip().splitlines()
        return recorded[0] if recorded else f"its process ended with code {self.code} before training began"


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """One code for the whole trial: a failure outweighs a stop, and a stop outweighs success."""
    verdicts = {outcome.verdict for outcome in outcomes}
    if "failed" in verdicts:
        return EXIT_FAILED
    return EXIT_STOPPED if "stopped" in verdicts else EXIT_DONE


def session_argv(run: Run, until: int | None, others: Sequence[Run] = ()) -> list[str]:
    """The job that trains one session, or several in one process; it needs nothing but the run directories."""
    limit = [] if until is None else ["--until", str(until)]
    return [sys.executable, "-m", "operant", "session", *(str(each.path) for each in (run, *others)), *limit]


class SessionJobs:
    """The jobs of a trial: those that wait, run and have ended, each of one session or more and known by its first.

    At most `workers` run at once, or all sessions `together` in one job. A failed session does not stop the others.
    The caller calls `advance` several times a second until it is no longer `busy`. Each job may use so many `cores`
    (by default an equal share of the machine's) and sees these further variables.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        launcher: Launcher,
        workers: int,
        *,
        until: int | None = None,
        together: bool = False,
        cores: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.runs = list(runs)
        self._launcher = launcher
        self._workers = workers
        self._until = until
        self._cores = cores or cores_each(workers)
        self._environment = environment or {}
        self._waiting = deque([self.runs] if together else [[run] for run in self.runs])
        self._active: dict[Path, Ticket] = {}
        self._ended: dict[Path, tuple[int, Path]] = {}
        self._job_of = {run.path: job[0].path for job in self._waiting for run in job}
        self._stop_requests = 0
        self._asked_at = 0.0
        self._runs_of: dict[Path, list[tuple[Run, int]]] = {}

    @property
    def busy(self) -> bool:
        """Whether a job runs or waits."""
        return bool(self._active or self._waiting)

    def stop(self, requests: int) -> None:
        """The first request goes to every session and nothing new is started; the second ends them now.

        `requests` counts all so far. A job that has nothing to save and does not hear the first (it loads or
        compiles) is ended after a few seconds.
        """
        if requests and not self._stop_requests:
            self._asked_at = time.monotonic()
        for _ in range(requests - self._stop_requests):
            for ticket in self._active.values():
                self._launcher.cancel(ticket)
        self._stop_requests = requests
        if requests:
            self._waiting.clear()
            self._end_unresponsive()

    def _end_unresponsive(self) -> None:
        """End the jobs that were asked once, have nothing to save, and are still here."""
        if self._stop_requests == 1 and time.monotonic() - self._asked_at > _RESPONSE_SECONDS:
            for path, ticket in self._active.items():
                if all(_has_nothing_to_save(run, attempts) for run, attempts in self._runs_of[path]):
                    self._launcher.cancel(ticket)

    def advance(self) -> None:
        """Collect the jobs that ended and fill the free places."""
        for path, ticket in list(self._active.items()):
            code = self._launcher.poll(ticket)
            if code is not None:
                del self._active[path]
                self._ended[path] = (code, ticket.log)
        while self._waiting and len(self._active) < self._workers:
            job = self._waiting.popleft()
            self._active[job[0].path] = self._start(job)

    def outcomes(self) -> list[Outcome]:
        """How each session's job ended, in the order of the sessions."""
        return [self._outcome(run) for run in self.runs]

    def _outcome(self, run: Run) -> Outcome:
        code, log = self._ended.get(self._job_of[run.path], (None, None))
        return Outcome(run=run, code=code, log=log, stop_asked=self._stop_requests > 0)

    def _start(self, job: list[Run]) -> Ticket:
        run, *others = job
        self._runs_of[run.path] = [(each, each.attempts) for each in job]
        log = log_path(run.path, run.attempts + 1)
        resources = Resources(run.threads, log, self._cores, self._environment)
        return self._launcher.submit(session_argv(run, self._until, others), resources, name=run.path.name)


def _has_nothing_to_save(run: Run, attempts_before: int) -> bool:
    """Whether an end now would lose no update: the attempt has not begun, or says so itself."""
    if run.attempts == attempts_before:
        return True
    phase = read_phase(run.path)
    return phase is not None and phase.interruptible
