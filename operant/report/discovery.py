"""What there is to look at below a folder: experiments, sessions without one, records of bare models."""

from __future__ import annotations

from pathlib import Path

from operant.report.episodes import holds_episodes
from operant.run.layout import EPISODES_FILE, EXPERIMENT_FILE, RUN_FILE, session_paths
from operant.run.run import list_experiments

RECORDS = (f"*/{EPISODES_FILE}", f"*/*/{EPISODES_FILE}", f"*/*/*/{EPISODES_FILE}")


def places(root: Path) -> dict[str, Path]:
    """Names and paths, experiments first, newest first; the folder itself where it is a run or a file of episodes."""
    root = Path(root)
    if _is_one(root):
        return {root.name: root}
    runs = [experiment.path for experiment in reversed(list_experiments(root))]
    folders = {file.parent for pattern in RECORDS for file in root.glob(pattern)}
    records = sorted(folder for folder in folders if not any(run in folder.parents for run in runs))
    return {path.relative_to(root).as_posix(): path for path in [*runs, *records]}


def _is_one(path: Path) -> bool:
    if path.is_file():
        return True
    is_run = (path / EXPERIMENT_FILE).is_file() or (path / RUN_FILE).is_file() or bool(session_paths(path))
    return is_run or ((path / EPISODES_FILE).is_file() and holds_episodes(path))
