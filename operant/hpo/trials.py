"""The trials of a search as run directories: made from drawn settings, scored from their rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from operant.engines import trains_together
from operant.errors import RunError
from operant.hpo.resources import side_by_side
from operant.hpo.schedulers import Fork
from operant.launch.budget import share
from operant.launch.fork import fork_session
from operant.report.read import EVAL_SCORE, FINAL_SCORE
from operant.run.checkpoint import list_checkpoints
from operant.run.disk import write_json
from operant.run.layout import METRICS_FILE, RESOLVED_FILE, RUN_FILE, session_path, shown, trial_path
from operant.run.metrics import read_rows
from operant.run.run import Run, find_sessions
from operant.spec.schema import Spec
from operant.spec.space import apply


def trial_spec(base: Spec, settings: Mapping[str, Any]) -> Spec | None:
    """The spec of one trial; None where the settings do not fit together."""
    data = apply({**base.model_dump(mode="json"), "search": None}, settings)
    try:
        return Spec.model_validate(data)
    except ValidationError:
        return None


def make_runs(experiment: Path, trial: int, spec: Spec) -> list[Run]:
    """The run directories of a trial, those that are there already as they are.

    Which lanes of a program its sessions are follows from its number, not from the trials that it trains with.
    """
    data, meta = spec.model_dump(mode="json"), spec.meta
    folder = trial_path(experiment, trial)
    threads = share(meta.max_session, meta.threads).threads
    runs = []
    for index in range(meta.max_session):
        path = session_path(folder, index)
        if not (path / RUN_FILE).exists():
            runs.append(
                Run.create(path, name=spec.name, spec=data, seed=meta.seed + index, session=index, threads=threads)
            )
        else:
            runs.append(Run.open(path))
    _record(folder, runs, trial, spec)
    return runs


def make_forks(experiment: Path, trial: int, spec: Spec, fork: Fork, frames: int) -> list[Run]:
    """The run directories of a fork, each session from that of the parent, where it paused at `frames` or just after.

    Those that are there already stay as they are.
    """
    data, folder = spec.model_dump(mode="json"), trial_path(experiment, trial)
    runs = []
    for parent in find_sessions(trial_path(experiment, fork.parent)):
        start = next((each for each in list_checkpoints(parent.checkpoints) if each.at.frames >= frames), None)
        if start is None:
            raise RunError(
                f"trial {trial} forks this session at {frames:,} frames, and its checkpoint from there is gone",
                place=shown(parent.path),
                remedy="restore it from a copy, or start a new search: operant search SPEC --new",
            )
        runs.append(fork_session(folder, parent, start, data, replaces=fork.replaces))
    _record(folder, runs, trial, spec)
    return runs


def _record(folder: Path, runs: Sequence[Run], trial: int, spec: Spec) -> None:
    """Write down the trial's spec, and the lanes of its sessions where several trials are side by side."""
    if not (folder / RESOLVED_FILE).exists():
        write_json(folder / RESOLVED_FILE, spec.model_dump(mode="json"))
    trials = side_by_side(spec) if trains_together(spec) else 0
    for run in runs:
        if trials and "lanes" not in run.document:
            run.record(lane=trial % trials * len(runs) + run.index, lanes=trials * len(runs))


def scores_of(runs: Sequence[Run]) -> tuple[float, ...]:
    """The score of each session so far: its final evaluation, or its last one. Empty where one has none."""
    scores = [_score(run) for run in runs]
    known = [score for score in scores if score is not None and math.isfinite(score)]
    return tuple(known) if len(known) == len(runs) else ()


def frames_of(runs: Sequence[Run]) -> int:
    """Frames trained, over all sessions."""
    return sum(saved[-1].at.frames for run in runs if (saved := list_checkpoints(run.checkpoints)))


def _score(run: Run) -> float | None:
    """The newest score; one that is not a number is None."""
    for row in reversed(read_rows(run.path / METRICS_FILE)):
        for key in (FINAL_SCORE, EVAL_SCORE):
            if key in row:
                return row[key]
    return None
