"""Bringing a run directory back to its newest good checkpoint, whatever happened to the last attempt.

Everything here changes files, so only the holder of the run's lock may call it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from operant.run.checkpoint import (
    Checkpoint,
    link_newest_and_best,
    newest_good,
    prune,
    remove_leftovers,
    set_aside,
)
from operant.run.disk import fsync_path
from operant.run.layout import CHECKPOINTS_FOLDER, LEFTOVER_PREFIX, checkpoint_paths, dropped_path, shown
from operant.run.metrics import JsonLines

Report = Callable[[str, str], None]


def recover(session: Path, attempt: int, keep: int, logs: Iterable[JsonLines], report: Report) -> Checkpoint | None:
    """Find where to continue, cut the logs back to that point, and finish what a killed save left undone.

    Corrupt checkpoints are set aside. Rows that no checkpoint can reproduce are copied into the
    logs folder before they are cut. `report(kind, message)` hears of everything lost.
    """
    checkpoints = session / CHECKPOINTS_FOLDER
    remove_leftovers(checkpoints)
    good = _find_good(checkpoints, report)
    for log in logs:
        if good is None:
            _start_again(session, attempt, log, report)
        else:
            _cut_back(log, good, report)
    if good is not None:
        report("resume", f"continues from {shown(good.path)}")
        prune(checkpoints, keep)
    if checkpoints.is_dir():
        link_newest_and_best(checkpoints)
    return good


def _find_good(checkpoints: Path, report: Report) -> Checkpoint | None:
    good, problems = newest_good(checkpoints)
    newest_first = reversed(checkpoint_paths(checkpoints))
    for path, problem in zip(newest_first, problems, strict=False):
        aside = set_aside(path)
        report("corrupt_checkpoint", f"{problem}; kept as {shown(aside)}")
    if problems and good is None:
        report("restart", "no checkpoint is good: training starts at 0")
    return good


def _start_again(session: Path, attempt: int, log: JsonLines, report: Report) -> None:
    if log.offset > 0:
        copy = dropped_path(session, attempt, log.path.name)
        _copy(log.path, copy)
        report("dropped_rows", f"{shown(log.path)} starts again; its {log.offset:,} bytes are kept in {shown(copy)}")
    log.truncate_to(0)


def _cut_back(log: JsonLines, good: Checkpoint, report: Report) -> None:
    log.truncate_to(good.offsets.get(log.path.name, 0))
    tell_lost_rows(log.path, log.offset, good, report)


def tell_lost_rows(log: Path, length: int, good: Checkpoint, report: Report) -> None:
    """Report a log that is shorter than it was at a checkpoint."""
    missing = good.offsets.get(log.name, 0) - length
    if missing > 0:
        report("lost_rows", f"{shown(log)} lacks {missing:,} bytes that it had at {shown(good.path)}")


def _copy(source: Path, target: Path) -> None:
    """Copy whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(LEFTOVER_PREFIX + target.name)
    shutil.copyfile(source, temporary)
    fsync_path(temporary)
    os.replace(temporary, target)
    fsync_path(target.parent)
