"""From a resolved spec to the run directories of a trial, and from run directories to what is left to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from operant.errors import RunError
from operant.launch.budget import share
from operant.run.checkpoint import list_checkpoints
from operant.run.layout import session_path, shown, trial_path
from operant.run.run import Run, create_experiment


def create_trial(
    spec: dict[str, Any],
    *,
    root: Path,
    out: Path | None,
    source_text: str,
    source_suffix: str,
    command: Sequence[str],
) -> list[Run]:
    """A new experiment of one trial, with a run directory for each of `meta.max_session` seeds.

    The threads of a session are decided here and recorded: exact resume needs the same number.
    """
    experiment = create_experiment(
        root, spec, source_text=source_text, source_suffix=source_suffix, command=command, out=out
    )
    meta = spec["meta"]
    threads = share(meta["max_session"], meta["threads"]).threads
    trial = trial_path(experiment.path, 0)
    return [
        Run.create(
            session_path(trial, k), name=spec["name"], spec=spec, seed=meta["seed"] + k, session=k, threads=threads
        )
        for k in range(meta["max_session"])
    ]


def unfinished(runs: Sequence[Run], until: int | None = None) -> list[Run]:
    """The sessions that have frames to go; `RunError` if one of them is being trained right now."""
    for run in runs:
        if run.state == "running":
            raise RunError(
                "this session is being trained right now",
                place=shown(run.path),
                remedy=f"operant show {shown(run.path)}    (to look on), or stop it first with Ctrl-C in its terminal",
            )
    return [run for run in runs if not reached(run, until)]


def reached(run: Run, until: int | None = None) -> bool:
    """Whether the session is done, or has saved a checkpoint at `until` frames or later."""
    if run.state == "done":
        return True
    saved = list_checkpoints(run.checkpoints)
    return until is not None and bool(saved) and saved[-1].at.frames >= until
