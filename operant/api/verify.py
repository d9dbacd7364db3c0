"""Whether a run can be had again: a part of it is rerun from its record, and every byte compared."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

from operant.api.handle import Handle
from operant.api.policy import engine_of_run
from operant.api.progress import watched
from operant.api.runs import Session, Trial, open_trial
from operant.errors import RunError, UsageError
from operant.launch.fork import fork_session
from operant.registry import origin as module_origin
from operant.report.differences import Difference, differences
from operant.report.origin import session_origin
from operant.report.verification import SessionCheck, Verification, check_score, check_session, reached
from operant.run.checkpoint import Checkpoint, CorruptCheckpoint, list_checkpoints
from operant.run.checkpoint import verify as verify_checkpoint
from operant.run.documents import json_text, read_document
from operant.run.layout import RESOLVED_FILE, session_path, shown, trial_path
from operant.run.run import Run, create_experiment, find_sessions
from operant.store.backend import Report

ALL_CHECKPOINTS = 100_000
_Start = Checkpoint | None


def verify(
    run: str | Path | Trial | Session,
    /,
    *,
    fraction: float = 0.1,
    out: str | Path | None = None,
    root: str | Path = "runs",
    progress: bool | None = None,
    report: Report = lambda line: None,
) -> Verification:
    """Run the first `fraction` of every session again, in a folder apart, and compare rows, episodes and weights.

    Where they differ, the result says whether the rerun's score lies inside the run's interval, and which recorded
    ingredient (setting, seed, line of code, package, arithmetic, machine) is another one now. The run itself is only
    read. The rerun is kept in `out` where that is given.
    """
    if not 0 < fraction <= 1:
        raise UsageError(f"a fraction of {fraction:g} cannot be run again", remedy="--fraction 0.1, at most 1")
    trial = open_trial(run, root)
    sessions = [each for each in find_sessions(trial.path) if reached(each)]
    if not sessions:
        cause = "nothing was trained here yet, so there is nothing to run again"
        raise UsageError(cause, place=shown(trial.path), remedy=f"operant resume {shown(trial.path)}")
    engine_of_run(sessions[0])
    starts = [_start(each) for each in sessions]
    report(f"running {100 * fraction:.3g} % of {shown(trial.path)} again ...")
    if out is not None:
        return _verified(trial, sessions, starts, fraction, Path(out), progress)
    with tempfile.TemporaryDirectory(prefix="operant-verify-") as folder:
        return _verified(trial, sessions, starts, fraction, Path(folder) / "rerun", progress)


def _verified(
    trial: Trial,
    runs: Sequence[Run],
    starts: Sequence[Checkpoint | None],
    fraction: float,
    out: Path,
    show: bool | None,
) -> Verification:
    again = _rerun(runs, starts, fraction, out, show)
    checks = tuple(check_session(*pair) for pair in zip(runs, again, strict=True))
    if all(each.difference is None for each in checks):
        return Verification(shown(trial.path), fraction, checks, None, ())
    found = _ingredients(runs, again, checks)
    score = check_score(runs, again)
    result = Verification(shown(trial.path), fraction, checks, score, found)
    if result.causes:
        return result
    with tempfile.TemporaryDirectory(prefix="operant-verify-") as folder:
        twice = _rerun(runs, starts, fraction, Path(folder) / "rerun", show)
        same = [check_session(*pair).difference is None for pair in zip(again, twice, strict=True)]
    return replace(result, repeatable=all(same))


def _rerun(runs: Sequence[Run], starts: Sequence[_Start], fraction: float, out: Path, show: bool | None) -> list[Run]:
    """The sessions again, from their own beginning, in an experiment of their own."""
    begun = starts[0].at.frames if starts[0] else 0
    until = begun + ceil(fraction * (max(map(reached, runs)) - begun))
    spec = _quiet_spec(runs, until)
    command = ["operant", "verify", shown(runs[0].path.parent)]
    experiment = create_experiment(
        out.parent, spec, source_text=json_text(spec), source_suffix=".json", command=command, out=out
    )
    trial = trial_path(experiment.path, 0)
    again = [_session(trial, run, start, spec) for run, start in zip(runs, starts, strict=True)]
    try:
        watched(Handle(again, until), show)
    except RunError as failure:
        remedy = "operant verify RUN --out DIR    (keeps the rerun with its log)"
        raise RunError(f"the rerun failed: {failure.cause}", place=shown(runs[0].path.parent), remedy=remedy) from None
    return again


def _session(trial: Path, run: Run, start: _Start, spec: dict[str, Any]) -> Run:
    if start is not None:
        return fork_session(trial, run, start, spec)
    path = session_path(trial, run.index)
    return Run.create(path, name=run.name, spec=spec, seed=run.seed, session=run.index, threads=run.threads)


def _quiet_spec(runs: Sequence[Run], until: int) -> dict[str, Any]:
    """The spec without what would reach beyond the folder; checkpoints are kept where the run has some to compare."""
    spec = runs[0].spec
    saved = [each for run in runs for each in list_checkpoints(run.checkpoints) if each.at.frames <= until]
    keep = ALL_CHECKPOINTS if saved else 1
    return {**spec, "meta": {**spec["meta"], "sync": None, "track": [], "keep_checkpoints": keep}}


def _start(run: Run) -> _Start:
    """Where a fork began; None for a session that began at frame 0."""
    if run.parent is None:
        return None
    place = Path(str(run.parent.get("checkpoint", "")))
    try:
        return verify_checkpoint(place)
    except CorruptCheckpoint:
        raise UsageError(
            f"this run began from a checkpoint of {run.parent['run']}, which is no longer there",
            place=shown(run.path),
            remedy=f"operant verify {run.parent['run']}, or restore {place}",
        ) from None


def _ingredients(runs: Sequence[Run], again: Sequence[Run], checks: Sequence[SessionCheck]) -> tuple[Difference, ...]:
    """In what the first session that differs and its rerun were made from other things."""
    run, rerun = next((a, b) for a, b, check in zip(runs, again, checks, strict=True) if check.difference)
    before, now = session_origin(run), session_origin(rerun)
    recorded = replace(before, spec=_resolved(run))
    parts = [module_origin(part["module"]) or part for part in before.parts]
    return tuple(differences(recorded, replace(now, spec=run.spec, parts=parts)))


def _resolved(run: Run) -> dict[str, Any]:
    """The settings as they were resolved when the run was made; those of run.json where that file is gone."""
    for folder in (run.path.parent, run.path.parent.parent):
        if (folder / RESOLVED_FILE).is_file():
            return read_document(folder, RESOLVED_FILE)
    return run.spec
