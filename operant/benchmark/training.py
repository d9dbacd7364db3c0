"""Training the cells of a suite side by side, and storing what each gave as soon as its seeds are done."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from operant.api.handle import POLL_SECONDS
from operant.benchmark.join import joined, require_joinable
from operant.benchmark.outcome import Outcome, outcome, read_outcome, store
from operant.benchmark.plan import PlannedCell, ResultsFolder
from operant.benchmark.table import interval
from operant.engines import trains_together
from operant.errors import RunError, StoppedError
from operant.launch.budget import usable_cores
from operant.launch.local import LocalLauncher
from operant.launch.prepare import unfinished
from operant.launch.stop_signals import StopSignals
from operant.launch.trial import SessionJobs
from operant.report.formatting import duration
from operant.report.tail import Tail
from operant.run.layout import METRICS_FILE, shown
from operant.run.run import Run
from operant.store.backend import Report

REPORT_SECONDS = 15.0


class CellTraining:
    """The sessions of all cells as jobs, and the outcome of each cell once its sessions are done.

    With `add` their seeds join those of the results that lie in the folder.
    """

    def __init__(
        self, suite: str, planned: Sequence[PlannedCell], results: ResultsFolder, report: Report, *, add: bool = False
    ) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self._suite = suite
        self._results = results
        self._report = report
        self._add = add
        self._groups: list[tuple[PlannedCell, str, list[Run]]] = []
        self._failures: dict[str, str] = {}
        for each in planned:
            kept = results.finished(each)
            if kept is not None:
                self.outcomes[each.cell.name] = kept
                report(f"{line(kept)}  (kept from before; another --out measures it again)")
            elif (stored := read_outcome(results.folder, each.cell.name)) is not None and add:
                require_joinable(stored, each, results.folder)
            elif stored is not None:
                report(
                    f"{each.cell.name}: the result in {shown(results.folder)} is of another run and will be replaced"
                )
        self._todo = [each for each in planned if each.cell.name not in self.outcomes]

    def run(self, jobs: int | None) -> None:
        """Train what is left to train; a request to stop ends it after every session has saved."""
        self._groups = [(each, *self._results.runs(each, self._report)) for each in self._todo]
        runs = [run for _, _, group in self._groups for run in unfinished(group)]
        if runs:
            counts = f"{len(runs)} sessions to train, of {', '.join(each.cell.name for each, _, _ in self._groups)}"
            self._report(f"{self._suite}: {counts}; Ctrl-C stops, the same command goes on")
        progress = _Progress([run for _, _, group in self._groups for run in group], self._report)
        self._store_finished()
        with StopSignals() as signals:
            for batch, together in self._batches():
                if not signals.count:
                    self._train(
                        SessionJobs(batch, LocalLauncher(), _workers(batch, jobs), together=together), signals, progress
                    )

    def _batches(self) -> list[tuple[list[Run], bool]]:
        """All sessions side by side; those that an engine trains as one program follow, a cell at a time."""
        alone: list[Run] = []
        programs: list[tuple[list[Run], bool]] = []
        for planned, _, group in self._groups:
            left = unfinished(group)
            if len(left) > 1 and trains_together(planned.loaded.spec):
                programs.append((left, True))
            else:
                alone += left
        return [*([(alone, False)] if alone else []), *programs]

    def _train(self, jobs: SessionJobs, signals: StopSignals, progress: _Progress) -> None:
        ended = 0
        while jobs.busy:
            jobs.stop(signals.count)
            jobs.advance()
            now_ended = sum(each.code is not None for each in jobs.outcomes())
            if now_ended > ended:
                ended = now_ended
                self._store_finished()
            progress.tell()
            time.sleep(POLL_SECONDS)
        for each in jobs.outcomes():
            if each.verdict == "failed":
                log = f"; its log is {shown(each.log)}" if each.log else ""
                self._failures.setdefault(shown(each.run.path), f"{each.cause}{log}")
        self._store_finished()

    def _store_finished(self) -> None:
        for planned, run, group in self._groups:
            if planned.cell.name not in self.outcomes and all(each.state == "done" for each in group):
                found = self._outcome(planned, run, group)
                store(found, self._results.folder)
                self.outcomes[planned.cell.name] = found
                self._report(line(found))

    def _outcome(self, planned: PlannedCell, run: str, group: list[Run]) -> Outcome:
        cell, settings = planned.cell, planned.settings_sha256
        found = outcome(self._suite, cell, planned.budget, planned.overrides, settings, group, run)
        stored = read_outcome(self._results.folder, cell.name) if self._add else None
        return found if stored is None else joined(stored, found)

    def raise_unfinished(self) -> None:
        """`RunError` if a session failed, `StoppedError` if cells are left to train."""
        again = "the same command goes on where it was"
        if self._failures:
            place, cause = next(iter(self._failures.items()))
            raise RunError(
                f"sessions that failed: {len(self._failures)}; the first: {cause}", place=place, remedy=again
            )
        left = [each.cell.name for each in self._todo if each.cell.name not in self.outcomes]
        if left:
            raise StoppedError(f"stopped with {len(left)} cells unfinished: {', '.join(left)}", remedy=again)


def _workers(runs: Sequence[Run], jobs: int | None) -> int:
    """How many sessions train at once, by default as many as have cores of their own."""
    widest = max(run.threads * run.spec["meta"].get("processes", 1) for run in runs)
    return jobs or max(1, usable_cores() // widest)


def line(found: Outcome) -> str:
    """One cell's outcome in one line."""
    parts = [f"{found['cell']:24}", f"score {interval(found['greedy'])}", f"sampled {interval(found['sampled'])}"]
    parts += [f"total_reward_ma {interval(found['total_reward_ma'])}"]
    if found["published"] is not None:
        parts.append(f"published {found['published']:g}")
    return "  ".join(parts)


class _Progress:
    """Tells every few seconds how many of the frames are trained, and how long the rest may take."""

    def __init__(self, runs: Sequence[Run], report: Report) -> None:
        self._report = report
        self._tails = {run.path: Tail(run.path / METRICS_FILE) for run in runs}
        self._total = sum(run.max_frame for run in runs)
        self._frames: dict[Path, int] = {}
        self._read()
        self._first = sum(self._frames.values())
        self._begun = self._told = time.monotonic()

    def tell(self) -> None:
        """A line, if it is time for one."""
        now = time.monotonic()
        if now - self._told < REPORT_SECONDS:
            return
        self._told = now
        self._read()
        # The last update of a session may end beyond its budget.
        trained = min(sum(self._frames.values()), self._total)
        rate = (trained - self._first) / (now - self._begun)
        left = f", about {duration((self._total - trained) / rate)} left" if rate > 0 and trained < self._total else ""
        self._report(f"  {100 * trained / self._total:.0f} % of {self._total:,} frames{left}")

    def _read(self) -> None:
        for path, tail in self._tails.items():
            for row in tail.read():
                self._frames[path] = int(row.get("frames") or 0)
