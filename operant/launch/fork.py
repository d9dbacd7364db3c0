"""A fork of a run: the same sessions, a changed setting, begun from the parent's newest good checkpoint."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.errors import RunError, UsageError
from operant.run.checkpoint import Checkpoint, adopt, newest_good
from operant.run.layout import ANCHORS_FILE, RUN_FILE, checkpoint_paths, session_path, shown, trial_path
from operant.run.run import Experiment, Run, create_experiment
from operant.run.seeding import reserved_seeds


@dataclass(frozen=True)
class _Start:
    """Where one session of a fork begins."""

    parent: Run
    checkpoint: Checkpoint


def experiment_of(runs: Sequence[Run]) -> Experiment:
    """The experiment that holds these sessions, which must be of one trial."""
    trials = {run.path.absolute().parent for run in runs}
    if len(trials) > 1:
        raise UsageError(
            f"a fork continues one trial, and there are {len(trials)} here",
            place=shown(trials.pop().parent),
            remedy=f"name one of them: operant resume {shown(runs[0].path.parent)} -s ...",
        )
    return Experiment(trials.pop().parent)


def create_fork(
    parents: Sequence[Run], spec: dict[str, Any], *, root: Path, command: Sequence[str], source_text: str
) -> tuple[Experiment, list[Run]]:
    """A new experiment in which every session of `parents` continues under `spec`.

    Everything that could be wrong is checked before the first directory is made; whether the settings that differ may
    do so is the spec's own question, which the caller has asked.
    """
    experiment = experiment_of(parents)
    _refuse_trained_seeds(experiment, parents[0].spec, spec)
    starts = [_Start(run, _start_of(run)) for run in parents]
    _refuse_without_budget(experiment, starts, int(spec["env"]["max_frame"]))
    fork = create_experiment(
        root,
        spec,
        source_text=source_text,
        source_suffix=".json",
        command=command,
        parent={"run": shown(experiment.path), "frames": min(start.checkpoint.at.frames for start in starts)},
    )
    trial = trial_path(fork.path, 0)
    return fork, [fork_session(trial, start.parent, start.checkpoint, spec) for start in starts]


def fork_session(trial: Path, parent: Run, start: Checkpoint, spec: dict[str, Any], **about: Any) -> Run:
    """The session of a trial that goes on from a checkpoint of its parent, made as far as it is not there yet.

    What is `about` it is recorded with the name of the parent.
    """
    path = session_path(trial, parent.index)
    if not (path / RUN_FILE).exists():
        origin = {"run": shown(parent.path), "checkpoint": shown(start.path), "frames": start.at.frames, **about}
        threads = spec["meta"]["threads"] or parent.threads
        Run.create(
            path,
            name=spec["name"],
            spec=spec,
            seed=parent.seed,
            session=parent.index,
            threads=threads,
            parent=origin,
        )
    run = Run.open(path)
    if not checkpoint_paths(run.checkpoints):
        # The random score belongs to the environment, which is the same; engines measure it only at frame 0.
        if (parent.path / ANCHORS_FILE).is_file():
            shutil.copyfile(parent.path / ANCHORS_FILE, run.path / ANCHORS_FILE)
        adopt(start, run.checkpoints)
    return run


def _start_of(run: Run) -> Checkpoint:
    good, problems = newest_good(run.checkpoints)
    if good is None:
        why = f"none of its checkpoints is good ({problems[0]})" if problems else "it has no checkpoint yet"
        raise RunError(
            f"a fork cannot start from this session: {why}",
            place=shown(run.path),
            remedy=f"operant resume {shown(run.path)}    (without -s, to train it first)",
        )
    return good


def _refuse_trained_seeds(experiment: Experiment, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """The parent kept its own evaluation seeds out of training, and not others."""
    old, new = (_evaluation_seeds(spec["meta"]) for spec in (before, after))
    # Language tasks hold problems out by their content, whatever the seed.
    if old != new and after["agent"].get("model") is None:
        raise UsageError(
            f"a fork cannot evaluate on the seeds {new.start} to {new.stop - 1}: its parent kept"
            f" {old.start} to {old.stop - 1} out of training, and may have trained on others",
            place=shown(experiment.path),
            remedy=f"-s meta.eval_seed={old.start}, and no more than {len(old)} eval_episodes and final_episodes;"
            " or operant eval --seed, which looks whether a seed was trained on",
        )


def _evaluation_seeds(meta: Mapping[str, Any]) -> range:
    keys = ("eval_seed", "eval_episodes", "final_episodes")
    return reserved_seeds(*(meta[key] for key in keys)) if all(key in meta for key in keys) else range(0)


def _refuse_without_budget(experiment: Experiment, starts: Sequence[_Start], max_frame: int) -> None:
    reached = max(start.checkpoint.at.frames for start in starts)
    if reached >= max_frame:
        raise UsageError(
            f"the parent has trained for {reached:,} frames already, and the fork's budget is {max_frame:,}",
            place=shown(experiment.path),
            remedy=f"give the fork more: -s env.max_frame={2 * reached}",
        )
