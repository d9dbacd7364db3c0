"""What there is to look at below a folder: experiments, sessions without one, records of bare models.

Only names are looked at, no file is read: a folder may hold thousands of runs, and is looked through again and again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from operant.report.episodes import holds_episodes
from operant.run.layout import EPISODES_FILE, EXPERIMENT_FILE, RUN_FILE, session_paths, trial_path

DEEPEST = 3
"""Records lie so many folders down at most, experiments one level less."""
FIRST_TRIAL = trial_path(Path(), 0).name


def places(root: Path) -> dict[str, Path]:
    """Names and paths, experiments first, newest first; the folder itself where it is a run or a file of episodes.

    The newest are those with the latest stamp, which the folder of an experiment has for its name.
    """
    root = Path(root)
    if _is_one(root):
        return {root.name: root}
    runs: list[str] = []
    records: list[str] = []
    for folder, is_run in _walk(os.fspath(root), 1):
        (runs if is_run else records).append(folder)
    runs.sort(key=lambda path: (os.path.basename(path), path), reverse=True)
    return {os.path.relpath(path, root).replace(os.sep, "/"): Path(path) for path in [*runs, *sorted(records)]}


def _walk(folder: str, depth: int) -> Iterator[tuple[str, bool]]:
    """Folders with an experiment (True) or a record (False); what lies inside an experiment is its own."""
    try:
        entries = [entry for entry in os.scandir(folder) if not entry.name.startswith(".")]
    except (NotADirectoryError, PermissionError, FileNotFoundError):
        return
    for entry in entries:
        if not entry.is_dir():
            continue
        names = _names(entry.path)
        if depth < DEEPEST and (EXPERIMENT_FILE in names or FIRST_TRIAL in names):
            yield entry.path, True
            continue
        if EPISODES_FILE in names:
            yield entry.path, False
        if depth < DEEPEST:
            yield from _walk(entry.path, depth + 1)


def _names(folder: str) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def _is_one(path: Path) -> bool:
    if path.is_file():
        return True
    is_run = (path / EXPERIMENT_FILE).is_file() or (path / RUN_FILE).is_file() or bool(session_paths(path))
    return is_run or ((path / EPISODES_FILE).is_file() and holds_episodes(path))
