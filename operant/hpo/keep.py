"""Checkpoints of trials that are over are removed, except those of the best. A paused trial keeps what it resumes from.

Rows and episodes stay. A trial is over when it was trained to the end, or has failed.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from operant.errors import RunError
from operant.hpo.jobs import JobRow
from operant.hpo.study import Study
from operant.run.layout import LEFTOVER_PREFIX, LOCK_FILE, trial_path
from operant.run.lock import RunLock
from operant.run.run import Run, find_sessions


def keep_best(study: Study, rows: Sequence[JobRow]) -> None:
    """Remove the checkpoints of finished trials beyond the `meta.search_keep` best."""
    last = len(study.plan.rungs) - 1
    over = [row for row in rows if row.finished and row.trial is not None and (row.rung == last or not row.scores)]
    ranked = sorted(over, key=lambda row: (-_mean(row.scores), row.number))
    for row in ranked[study.spec.meta.search_keep :]:
        assert row.trial is not None
        for run in find_sessions(trial_path(study.path, row.trial)):
            _remove(run)


def _mean(scores: tuple[float, ...]) -> float:
    return sum(scores) / len(scores) if scores else float("-inf")


def _remove(run: Run) -> None:
    """Take the checkpoints away, with a note in run.json that this was meant."""
    if not run.checkpoints.is_dir():
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
