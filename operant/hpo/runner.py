"""Trains the jobs of a search on this machine, one in each slot.

Jobs come in batches. This runner trains each by itself; one that trains several as lanes of one program would take
the jobs of a batch together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from operant.engines import engine_of, trains_together
from operant.errors import EXIT_DONE
from operant.hpo.resources import Slot
from operant.launch.fork_server import ForkLauncher
from operant.launch.launcher import Launcher
from operant.launch.local import LocalLauncher
from operant.launch.parent_watch import await_orphans
from operant.launch.prepare import reached
from operant.launch.trial import Outcome, SessionJobs
from operant.run.run import Run
from operant.spec.schema import Spec

SERVER_LOG = "search.log"


@dataclass(frozen=True)
class Work:
    """A job to train: the sessions of a trial up to so many frames, None for the whole budget."""

    number: int
    runs: tuple[Run, ...]
    until: int | None


@dataclass(frozen=True)
class Ended:
    """A job that has ended, and how each of its sessions did."""

    work: Work
    outcomes: tuple[Outcome, ...]


class LocalRunner:
    """Slots of this machine, each with the job that it trains."""

    def __init__(self, spec: Spec, slots: Sequence[Slot], experiment: Path) -> None:
        self._slots = list(slots)
        self._together = trains_together(spec)
        self._processes = spec.meta.processes
        self._active: dict[int, tuple[Work, SessionJobs, Slot]] = {}
        self._plain = LocalLauncher()
        self._forking: dict[int, ForkLauncher] = {}
        self._forks = hasattr(engine_of(spec), "preload") and self._processes == 1
        self._engine = spec.engine_name
        self._log = experiment / SERVER_LOG

    @property
    def free(self) -> int:
        """How many more jobs can be started now."""
        return len(self._slots)

    @property
    def running(self) -> list[Work]:
        """The jobs that train now."""
        return [work for work, _, _ in self._active.values()]

    def start(self, batch: Sequence[Work]) -> None:
        """Begin to train these jobs, at most as many as are `free`."""
        for work in batch:
            slot = self._slots.pop(0)
            # A process whose search was killed saves and ends by itself; until then it holds its session.
            await_orphans(work.runs, lambda line: None)
            runs = [run for run in work.runs if not reached(run, work.until)]
            threads = work.runs[0].threads
            at_once = max(1, slot.cores // (threads * self._processes))
            jobs = SessionJobs(
                runs,
                self._launcher(threads),
                at_once,
                until=work.until,
                together=self._together and len(runs) > 1,
                cores=max(1, slot.cores // at_once),
                environment=slot.environment,
            )
            jobs.advance()
            self._active[work.number] = (work, jobs, slot)

    def advance(self) -> list[Ended]:
        """Look after the jobs; returns those that have ended since."""
        over = []
        for number, (work, jobs, slot) in list(self._active.items()):
            jobs.advance()
            if not jobs.busy:
                del self._active[number]
                self._slots.append(slot)
                over.append(Ended(work, tuple(self._outcomes(work, jobs))))
        return over

    def stop(self, requests: int, numbers: Sequence[int] | None = None) -> None:
        """The first request lets jobs save and end, the second ends them now; `numbers` names some of them."""
        for number, (_, jobs, _) in self._active.items():
            if numbers is None or number in numbers:
                jobs.stop(requests)

    def close(self) -> None:
        """Let go of what was kept ready for more jobs."""
        for launcher in self._forking.values():
            launcher.close()
        self._forking.clear()

    def _launcher(self, threads: int) -> Launcher:
        if not self._forks:
            return self._plain
        if threads not in self._forking:
            self._forking[threads] = ForkLauncher(self._engine, threads, self._log)
        return self._forking[threads]

    def _outcomes(self, work: Work, jobs: SessionJobs) -> list[Outcome]:
        """How each session of the job stands; those that had nothing left to do are done."""
        ended = {outcome.run.path: outcome for outcome in jobs.outcomes()}
        done = {run.path: Outcome(run, EXIT_DONE, None, False) for run in work.runs}
        return list((done | ended).values())
