"""Checkpoints of trials that are over are removed, except those of the best. A paused trial keeps what it resumes from.

Rows and episodes stay. A trial is over when it was trained to the end, was replaced, or has failed. In a population
the checkpoint at which a trial paused is held, whatever it does next, until no fork can begin from it any more.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from operant.errors import RunError
from operant.hpo.jobs import JobRow
from operant.hpo.study import Study
from operant.run.checkpoint import hold, list_checkpoints
from operant.run.layout import CHECKPOINTS_FOLDER, HELD_FILE, LEFTOVER_PREFIX, LOCK_FILE, trial_path
from operant.run.lock import RunLock
from operant.run.run import Run, find_sessions


def keep_best(study: Study, rows: Sequence[JobRow]) -> None:
    """Remove the checkpoints of finished trials beyond the `meta.search_keep` best."""
    last = len(study.plan.rungs) - 1
    replaced = {row.fork.replaces for row in rows if row.fork is not None}
    newest = {row.trial: row for row in rows if row.trial is not None and row.finished}
    over = [row for row in newest.values() if row.rung == last or not row.scores or row.trial in replaced]
    ranked = sorted(over, key=lambda row: (row.rung < last, -_mean(row.scores), row.number))
    for row in ranked[study.spec.meta.search_keep :]:
        assert row.trial is not None
        for run in find_sessions(trial_path(study.path, row.trial)):
            _remove(run)


def hold_for_forks(runs: Sequence[Run]) -> None:
    """Keep the checkpoints at which these sessions have paused, so that forks can begin there later."""
    for run in runs:
        hold(list_checkpoints(run.checkpoints)[-1])


def let_go(study: Study, rows: Sequence[JobRow], *, is_over: bool = False) -> None:
    """End the hold on checkpoints from which all forks have begun: those before the last rung that all have reached.

    Of a search that is over these are all, also those that a killed worker did not come to.
    """
    plan, finished = study.plan, Counter(row.rung for row in rows if row.finished and row.trial is not None)
    reached = [frames for rung, frames in enumerate(plan.rungs) if finished[rung] >= plan.max_trial]
    if plan.rule != "pbt" or not (reached or is_over):
        return
    for mark in study.path.glob(f"trial_*/session_*/{CHECKPOINTS_FOLDER}/*[0-9]/{HELD_FILE}"):
        if is_over or int(mark.parent.name) < reached[-1]:
            mark.unlink(missing_ok=True)


def _mean(scores: tuple[float, ...]) -> float:
    return sum(scores) / len(scores) if scores else float("-inf")


def _remove(run: Run) -> None:
    """Take the checkpoints away, with a note in run.json that this was meant."""
    if not run.checkpoints.is_dir() or any(run.checkpoints.glob(f"*[0-9]/{HELD_FILE}")):
        return
    lock = RunLock(run.path / LOCK_FILE)
    try:
        lock.acquire()
    except RunError:
        return  # another worker does the same, or somebody trains it on
    try:
        run.record(checkpoints_removed=True)
        doomed = Path(run.path / f"{LEFTOVER_PREFIX}{run.checkpoints.name}")
        shutil.rmtree(doomed, ignore_errors=True)
        run.checkpoints.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)
    finally:
        lock.release()
