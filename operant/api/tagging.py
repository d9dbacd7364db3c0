"""Tags on runs, and runs that are put away."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from operant.api.runs import AnyRun, find_experiment
from operant.run.tags import Tags, change_tags, read_tags, set_archived


class Tagged(NamedTuple):
    """The folder of an experiment, and its tags as they are now."""

    path: Path
    tags: Tags


def tag(run: AnyRun, /, *, add: Iterable[str] = (), remove: Iterable[str] = (), root: str | Path = "runs") -> Tagged:
    """Add and remove tags of the experiment that a run belongs to; without either, read them."""
    path, added, removed = find_experiment(run, root), list(add), list(remove)
    return Tagged(path, change_tags(path, added, removed) if added or removed else read_tags(path))


def archive(run: AnyRun, archived: bool = True, /, *, root: str | Path = "runs") -> Tagged:
    """Leave an experiment out of lists of runs, or put it back; nothing of it is moved or deleted."""
    path = find_experiment(run, root)
    return Tagged(path, set_archived(path, archived))
