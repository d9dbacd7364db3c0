"""The trials of a search as run directories: made from drawn settings, scored from their rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from operant.engines import trains_together
from operant.hpo.resources import side_by_side
from operant.launch.budget import share
from operant.report.read import EVAL_SCORE, FINAL_SCORE
from operant.run.checkpoint import list_checkpoints
from operant.run.disk import write_json
from operant.run.layout import METRICS_FILE, RESOLVED_FILE, RUN_FILE, session_path, trial_path
from operant.run.metrics import read_rows
from operant.run.run import Run
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
    if not (folder / RESOLVED_FILE).exists():
        write_json(folder / RESOLVED_FILE, data)
    if trains_together(spec):
        _record_lanes(runs, trial, side_by_side(spec))
    return runs


def _record_lanes(runs: Sequence[Run], trial: int, trials: int) -> None:
    """Give new sessions their lanes, where so many `trials` are side by side."""
    first = trial % trials * len(runs)
    for run in runs:
        if "lanes" not in run.document:
            run.record(lane=first + run.index, lanes=trials * len(runs))


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
