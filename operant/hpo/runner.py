"""Trains the jobs of a search on this machine: one in each slot, or as many as a slot has lanes.

Jobs that agree in their program and in how far they train share a process. Which ones do depends on what waits when a
slot is free; their results do not. Where a process of several jobs fails, those that it had begun and not brought to
their end are trained on one by one, so that the failure is that of the job that has it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
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


@dataclass(frozen=True)
class _Group:
    """Jobs that share a process (or one job, whose sessions may have one each), and the attempts of each before it."""

    works: list[Work]
    attempts: list[int]
    jobs: SessionJobs
    slot: Slot


class LocalRunner:
    """Slots of this machine, each with the jobs that it trains, at most `lanes` at once."""

    def __init__(self, spec: Spec, slots: Sequence[Slot], experiment: Path, lanes: int = 1) -> None:
        self._slots = list(slots)
        self._lanes = lanes
        self._room = len(slots) * lanes
        self._engine = engine_of(spec)
        self._together = trains_together(spec)
        self._processes = spec.meta.processes
        self._waiting: list[tuple[Hashable, Work]] = []
        self._active: list[_Group] = []
        self._plain = LocalLauncher()
        self._forking: dict[int, ForkLauncher] = {}
        self._forks = hasattr(self._engine, "preload") and self._processes == 1
        self._engine_name = spec.engine_name
        self._log = experiment / SERVER_LOG

    @property
    def free(self) -> int:
        """How many more jobs can be started now."""
        return max(0, self._room - len(self.running))

    @property
    def running(self) -> list[Work]:
        """The jobs that train now, and those that wait for a slot."""
        return [*(work for group in self._active for work in group.works), *(work for _, work in self._waiting)]

    def start(self, batch: Sequence[Work]) -> None:
        """Begin to train these jobs, and those that were queued."""
        for work in batch:
            self.queue(work)
        while self._slots and self._waiting:
            works, slot = self._next_group(), self._slots.pop(0)
            attempts = [_attempts(work) for work in works]
            self._active.append(_Group(works, attempts, self._begin(works, slot), slot))

    def queue(self, work: Work, alone: bool = False) -> None:
        """Let a job wait for the next `start`; `alone` in a process of its own."""
        if alone or self._lanes == 1:
            self._waiting.append((work.number, work))
        else:
            self._waiting.append(((self._engine.program_key(work.runs[0].spec), work.until), work))

    def _next_group(self) -> list[Work]:
        """The job that waits longest and those that can train with it, as many as make an equal share of the slots."""
        most = min(self._lanes, -(-len(self._waiting) // len(self._slots)))
        first = self._waiting[0][0]
        chosen = [waiting for waiting in self._waiting if waiting[0] == first][:most]
        self._waiting = [waiting for waiting in self._waiting if waiting not in chosen]
        return [work for _, work in chosen]

    def _begin(self, works: list[Work], slot: Slot) -> SessionJobs:
        # A process whose search was killed saves and ends by itself; until then it holds its session.
        await_orphans([run for work in works for run in work.runs], lambda line: None)
        runs = [run for work in works for run in work.runs if not reached(run, work.until)]
        threads = works[0].runs[0].threads
        at_once = max(1, slot.cores // (threads * self._processes))
        jobs = SessionJobs(
            runs,
            self._launcher(threads),
            at_once,
            until=works[0].until,
            together=self._together and len(runs) > 1,
            cores=max(1, slot.cores // at_once),
            environment=slot.environment,
        )
        jobs.advance()
        return jobs

    def advance(self) -> list[Ended]:
        """Look after the jobs; returns those that have ended since."""
        over = []
        for group in list(self._active):
            group.jobs.advance()
            if not group.jobs.busy:
                self._active.remove(group)
                self._slots.append(group.slot)
                over += self._ended(group)
        return over

    def _ended(self, group: _Group) -> list[Ended]:
        """How the jobs of a group ended, without those that wait again because a process of several has failed."""
        over = [Ended(work, tuple(self._outcomes(work, group.jobs))) for work in group.works]
        failed = [each for each in over if any(o.verdict == "failed" and not o.stop_asked for o in each.outcomes)]
        before = dict(zip((work.number for work in group.works), group.attempts, strict=True))
        begun = {each.work.number for each in failed if _attempts(each.work) > before[each.work.number]}
        if len(over) == 1 or not begun:
            return over
        for each in failed:
            self.queue(each.work, alone=each.work.number in begun)
        return [each for each in over if each not in failed]

    def stop(self, requests: int, numbers: Sequence[int] | None = None) -> None:
        """The first request lets jobs save and end, the second ends them now; `numbers` names some of them.

        Those that share a process with a named one are stopped with it.
        """
        named = {work.number for work in self.running} if numbers is None else set(numbers)
        if requests:
            self._waiting = [(kind, work) for kind, work in self._waiting if work.number not in named]
        for group in self._active:
            if any(work.number in named for work in group.works):
                group.jobs.stop(requests)

    def close(self) -> None:
        """Let go of what was kept ready for more jobs."""
        for launcher in self._forking.values():
            launcher.close()
        self._forking.clear()

    def _launcher(self, threads: int) -> Launcher:
        if not self._forks:
            return self._plain
        if threads not in self._forking:
            self._forking[threads] = ForkLauncher(self._engine_name, threads, self._log)
        return self._forking[threads]

    def _outcomes(self, work: Work, jobs: SessionJobs) -> list[Outcome]:
        """How each session of the job stands; those that have nothing left to do are done."""
        ended = {outcome.run.path: outcome for outcome in jobs.outcomes() if not reached(outcome.run, work.until)}
        done = {run.path: Outcome(run, EXIT_DONE, None, False) for run in work.runs}
        return [(done | ended)[run.path] for run in work.runs]


def _attempts(work: Work) -> int:
    """How often training was begun, over the sessions of a job."""
    return sum(run.attempts for run in work.runs)
