"""The course of a search: claim the next job, train it, record its result, until nothing is left to do."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from operant.engines import engine_of
from operant.errors import RunError, UsageError
from operant.hpo.jobs import FORK, HEARTBEAT_SECONDS, JobRow, Jobs
from operant.hpo.keep import hold_for_forks, keep_best, let_go
from operant.hpo.mirror import Mirror
from operant.hpo.perturbation import perturb
from operant.hpo.resources import Slot, lanes, slots
from operant.hpo.runner import Ended, LocalRunner, Work
from operant.hpo.sampling import Draw, TrialResult, draw, none_fits
from operant.hpo.schedulers import OVER, Step, next_step
from operant.hpo.sidecars import Sidecars
from operant.hpo.storage import database_url, require_optuna
from operant.hpo.study import Study, mark_done
from operant.hpo.trials import frames_of, make_forks, make_runs, scores_of, trial_spec
from operant.run.layout import shown, trial_path
from operant.run.run import find_sessions
from operant.run.seeding import Seeds
from operant.spec.fork import changes
from operant.spec.reading.document import lookup
from operant.spec.space import TRIES

LOOK_EVERY_SECONDS = 0.5
MAX_RESTARTS = 3
FAILED_AT_ONCE = 3
LEAST_FREE_BYTES = 1 << 24


@dataclass
class Search:
    """A worker of a study: one process that trains its jobs. Several may work on one study.

    The caller calls `advance` several times a second until it is no longer `busy`, and then `close`. `report` is
    called with a line about everything that happens.
    """

    study: Study
    storage: str | None = None
    report: Callable[[str], None] = lambda line: None
    room: Sequence[Slot] | None = None
    busy: bool = True
    stopped: bool = False
    rows: list[JobRow] = field(default_factory=list)

    def __post_init__(self) -> None:
        require_optuna()
        url = database_url(self.study.path, self.storage)
        self.jobs = Jobs(url, self.study.name)
        self._mirror = Mirror(url, self.study)
        room = list(self.room or slots(self.study.spec.meta.search_resources))[: self.study.workers]
        self._runner = LocalRunner(self.study.spec, room, self.study.path, lanes(self.study.spec))
        self._looked = self._beat = 0.0
        self._restarts: dict[int, int] = {}
        self._requests = 0
        self.rows = self.jobs.all()
        self._sidecars = Sidecars(self.study, self.report)

    def stop(self, requests: int) -> None:
        """The first request lets the jobs save and end, the second ends them now; `requests` counts all so far."""
        self._requests = requests
        if requests:
            self._runner.stop(requests)

    def advance(self) -> None:
        """Record what has ended and start what can be started."""
        over = self._runner.advance()
        for ended in over:
            self._sidecars.end(ended.work)
            self._conclude(ended)
        self._keep_beating()
        now = time.monotonic()
        if self._requests:
            self.stopped = True
            self.busy = bool(self._runner.running)
        elif over or now - self._looked >= LOOK_EVERY_SECONDS:
            self._looked = now
            self._fill()

    def close(self, leave: Callable[[], bool] = lambda: False) -> None:
        """Give back the jobs that were not finished, and let go of the processes kept ready.

        Waits until everything is uploaded, unless `leave` says not to: the upload goes on by itself.
        """
        self._runner.close()
        self.jobs.release([row.number for row in self.jobs.all() if not row.finished])
        self._sidecars.finish(leave)

    def _fill(self) -> None:
        """Claim as many jobs as there is room for, if there are so many."""
        batch: list[Work] = []
        while len(batch) < self._runner.free:
            self.rows = self.jobs.all()
            work = self._claimed()
            if work is None:
                break
            batch.append(work)
            self._sidecars.begin(work)
        self._runner.start(batch)

    def _claimed(self) -> Work | None:
        """The next job of this worker: one whose worker died, or the next in order. None where there is none now."""
        for row in self.jobs.abandoned(self.rows):
            if self.jobs.take_over(row):
                return self._work(row)
        step = next_step(self.rows, self.study.plan)
        if step == OVER:
            self.busy = bool(self._runner.running)
            if not self.busy:
                self._end()
        if not isinstance(step, Step):
            return None
        row = self._row(step)
        if not self.jobs.claim(row):
            # Another worker was first, and decided the same.
            self.rows = self.jobs.all()
            return self._claimed()
        if row.idle:
            self.rows = [*self.rows, row]
            return self._claimed()
        return self._work(row)

    def _end(self) -> None:
        """Nothing is left to do, for any worker: keep only what is to be kept, and say so."""
        let_go(self.study, self.rows, is_over=True)
        keep_best(self.study, self.rows)
        mark_done(self.study)

    def _row(self, step: Step) -> JobRow:
        number = len(self.rows)
        if step.trial is None:
            return JobRow(number, finished=True)
        if step.fork is not None:
            settings = self._perturbed(step.trial, step.fork.parent)
            return JobRow(number, step.trial, step.rung, settings=settings, attributes={FORK: asdict(step.fork)})
        if step.rung > 0:
            return JobRow(number, step.trial, step.rung)
        drawn = self._draw(step.trial)
        return JobRow(number, step.trial, settings=drawn.settings, attributes=drawn.attributes)

    def _draw(self, trial: int) -> Draw:
        """Settings for a new trial that fit together, from the results that the decision may know."""
        meta, known = self.study.spec.meta, len(self.rows) - self.study.workers + 1
        told = trial_results(self.study, self.rows, known)
        for attempt in range(TRIES):
            drawn = draw(self.study.space, meta.search_sampler, meta.seed, trial, told, attempt)
            if trial_spec(self.study.spec, drawn.settings) is not None:
                return drawn
        raise none_fits(trial)

    def _perturbed(self, trial: int, parent: int) -> dict[str, Any]:
        """Settings for a fork that fit together and that its parent's checkpoint allows, or else its parent's own."""
        meta, base = self.study.spec.meta, self.study.spec.model_dump(mode="json")
        first = next(row.settings for row in self.rows if row.trial == parent and row.settings is not None)
        settings = {**_base_settings(self.study, base), **first}
        before, scheduler = trial_spec(self.study.spec, settings), meta.search_scheduler
        assert before is not None
        assert scheduler is not None
        factors, anew = scheduler.perturbation_factors, scheduler.resample_probability
        for attempt in range(TRIES):
            seed = Seeds(meta.seed).integer("search perturbation", trial, attempt)
            moved = perturb(self.study.space, settings, factors, anew, seed)
            after = trial_spec(self.study.spec, moved)
            if after is not None and all(change.allowed for change in changes(before, after)):
                return moved
        return settings

    def _work(self, row: JobRow) -> Work | None:
        """The job's sessions, made now if it is the first of its trial; None for one that the engine refuses."""
        assert row.trial is not None
        rungs = self.study.plan.rungs
        if row.settings is not None:
            spec = trial_spec(self.study.spec, row.settings)
            assert spec is not None
            try:
                engine_of(spec).validate(spec)
            except UsageError as refused:
                self.report(f"trial {row.trial} cannot run: {refused.cause}")
                self.jobs.finish(row.number, (), 0)
                self.rows = self.jobs.all()
                return self._claimed()
            if row.fork is None:
                runs = make_runs(self.study.path, row.trial, spec)
            else:
                runs = make_forks(self.study.path, row.trial, spec, row.fork, rungs[row.rung - 1])
            self._mirror.begin(row)
        else:
            runs = find_sessions(trial_path(self.study.path, row.trial))
        until = None if row.rung == len(rungs) - 1 else rungs[row.rung]
        return Work(row.number, tuple(runs), until)

    def _conclude(self, ended: Ended) -> None:
        """Record a result; a job whose process was killed is started again."""
        work, verdicts = ended.work, {outcome.verdict for outcome in ended.outcomes}
        row = next(row for row in self.jobs.all() if row.number == work.number)
        is_done = verdicts == {"done"}
        # Another worker has it now, or it goes on when the search does.
        if row.worker != self.jobs.worker or (self._requests and not is_done):
            return
        if not is_done and self._restarted(row, ended):
            return
        if not is_done:
            self._report_failure(row, ended)
        scores = scores_of(work.runs) if is_done else ()
        if scores and self.study.plan.rule == "pbt" and work.until is not None:
            hold_for_forks(work.runs)
        if not self.jobs.finish(work.number, scores, frames_of(work.runs)):
            return
        self.rows = self.jobs.all()
        self._mirror.finish(row, scores)
        self._stop_if_all_fail(ended)
        let_go(self.study, self.rows)
        keep_best(self.study, self.rows)

    def _restarted(self, row: JobRow, ended: Ended) -> bool:
        """Start a job again whose process was ended from outside, a few times at most; whether that was so."""
        killed = any(outcome.signal_name or outcome.verdict == "stopped" for outcome in ended.outcomes)
        restarts = self._restarts[row.number] = self._restarts.get(row.number, 0) + 1
        if not killed or restarts > MAX_RESTARTS:
            return False
        self.report(f"{self._name(row)} was killed; it continues from its last checkpoint")
        self._sidecars.begin(ended.work)
        self._runner.queue(ended.work)
        return True

    def _report_failure(self, row: JobRow, ended: Ended) -> None:
        """Say why; a full disk is no fault of the trial, and ends the search."""
        if shutil.disk_usage(self.study.path).free < LEAST_FREE_BYTES:
            remedy = f"make room, then operant search {shown(self.study.path)}"
            raise RunError("the disk is full; nothing is lost", place=shown(self.study.path), remedy=remedy)
        first = next(outcome for outcome in ended.outcomes if outcome.verdict != "done")
        self.report(f"{self._name(row)} failed: {first.cause}")

    def _stop_if_all_fail(self, ended: Ended) -> None:
        """The first trials all failing is a fault of the spec or the machine, not of a setting."""
        results = [row for row in self.rows if row.finished and not row.idle]
        if len(results) == FAILED_AT_ONCE and not any(row.scores for row in results):
            causes = [outcome.cause for outcome in ended.outcomes if outcome.verdict == "failed"]
            raise RunError(
                f"the first {FAILED_AT_ONCE} trials all failed; the last: {causes[0] if causes else 'no score'}",
                place=shown(ended.work.runs[0].path.parent),
                remedy=f"operant show {shown(self.study.path)}    (and a new search when it is mended)",
            )

    def _keep_beating(self) -> None:
        """Every few seconds: say that this worker lives, and look after the processes beside it."""
        if time.monotonic() - self._beat < HEARTBEAT_SECONDS:
            return
        self._beat = time.monotonic()
        self._sidecars.advance()
        lost = self.jobs.beat([work.number for work in self._runner.running])
        if lost:
            self.report(f"{len(lost)} jobs were taken over by another worker")
            self._runner.stop(1, lost)

    def _name(self, row: JobRow) -> str:
        return f"trial {row.trial} at rung {row.rung}"


def trial_results(study: Study, rows: Sequence[JobRow], known: int) -> list[TrialResult]:
    """Every trial that was begun, with its newest result among the first `known` jobs."""
    base, last = study.spec.model_dump(mode="json"), len(study.plan.rungs) - 1
    told = []
    for first in (row for row in rows if row.settings is not None):
        results = [row for row in rows[: max(0, known)] if row.trial == first.trial and row.finished]
        newest = results[-1] if results else None
        scored = newest is not None and bool(newest.scores)
        told.append(
            TrialResult(
                settings={**_base_settings(study, base), **(first.settings or {})},
                score=sum(newest.scores) / len(newest.scores) if newest and scored else None,
                failed=newest is not None and not scored,
                paused_at=study.plan.rungs[newest.rung] if newest and newest.rung < last else None,
                attributes=first.attributes or {},
            )
        )
    return told


def _base_settings(study: Study, base: dict[str, Any]) -> dict[str, Any]:
    """What trials have that were made before a setting was searched: the value of the spec."""
    found: dict[str, Any] = {}
    for dimension in study.space:
        values = [lookup(base, tuple(path.split("."))) for path in dimension.paths]
        found[dimension.path] = values if len(values) > 1 else values[0]
    return found
