from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from operant.errors import RunError, UsageError
from operant.launch.fork import create_fork, experiment_of
from operant.run.checkpoint import newest_good, publish
from operant.run.layout import ANCHORS_FILE, session_path, trial_path
from operant.run.progress import Progress
from operant.run.run import Experiment, Run

MakeTrial = Callable[..., list[Run]]


@pytest.fixture
def parents(make_trial: MakeTrial) -> list[Run]:
    """Two sessions that have each saved at frame 40."""
    runs = make_trial(max_session=2, threads=3)
    for run in runs:
        save(run, 40, f"weights of {run.index}")
        (run.path / ANCHORS_FILE).write_text('{"random": 1.5}')
    return runs


def save(run: Run, frames: int, text: str) -> None:
    publish(
        run.checkpoints,
        Progress(frames=frames, updates=9),
        lambda folder: (folder / "weights").write_text(text),
        2.0,
        {"metrics.jsonl": 123},
    )


def make_fork(parents: list[Run], root: Path, **changes: Any) -> tuple[Experiment, list[Run]]:
    spec = copy.deepcopy(parents[0].spec)
    for path, value in changes.items():
        section, _, key = path.rpartition("__")
        target = spec
        for part in section.split("__"):
            target = target[part]
        target[key] = value
    return create_fork(parents, spec, root=root, command=["operant", "resume"], source_text="{}")


def test_a_fork_starts_from_its_parents_checkpoint_with_empty_logs(parents: list[Run], tmp_path: Path) -> None:
    _, children = make_fork(parents, tmp_path / "runs", env__max_frame=200)
    for parent, fork in zip(parents, children, strict=True):
        good, problems = newest_good(fork.checkpoints)
        assert problems == []
        assert good is not None
        assert good.at == Progress(frames=40, updates=9)
        assert good.offsets == {}
        assert (good.path / "weights").read_text() == f"weights of {parent.index}"
        assert json.loads((fork.path / ANCHORS_FILE).read_text()) == {"random": 1.5}


def test_a_fork_names_its_parent_and_keeps_seed_and_threads(parents: list[Run], tmp_path: Path) -> None:
    experiment, children = make_fork(parents, tmp_path / "runs", env__max_frame=200)
    assert experiment.document["parent"]["run"].endswith(parents[0].path.parent.parent.name)
    assert experiment.path != parents[0].path.parent.parent
    for parent, fork in zip(parents, children, strict=True):
        assert fork.parent is not None
        assert fork.parent["frames"] == 40
        assert fork.parent["run"].endswith(f"session_{parent.index}")
        assert (fork.seed, fork.index, fork.threads) == (parent.seed, parent.index, 3)
        assert fork.spec["env"]["max_frame"] == 200


def test_the_parent_is_untouched(parents: list[Run], tmp_path: Path) -> None:
    before = {path: path.read_bytes() for run in parents for path in run.path.rglob("*") if path.is_file()}
    make_fork(parents, tmp_path / "runs", env__max_frame=200)
    assert {path: path.read_bytes() for run in parents for path in run.path.rglob("*") if path.is_file()} == before


def test_a_fork_without_frames_to_go_is_refused(parents: list[Run], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has trained for 40 frames already") as refused:
        make_fork(parents, tmp_path / "elsewhere", env__max_frame=40)
    assert refused.value.remedy == "give the fork more: -s env.max_frame=80"
    assert not (tmp_path / "elsewhere").exists()


def test_a_parent_without_a_checkpoint_is_refused(make_trial: MakeTrial, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="it has no checkpoint yet"):
        make_fork(make_trial(max_session=1), tmp_path / "elsewhere", env__max_frame=200)


def test_a_parent_whose_checkpoints_are_all_corrupt_is_refused(parents: list[Run], tmp_path: Path) -> None:
    (parents[1].checkpoints / "000000000040" / "weights").write_text("changed")
    with pytest.raises(RunError, match="none of its checkpoints is good"):
        make_fork(parents, tmp_path / "elsewhere", env__max_frame=200)


def test_a_fork_continues_one_trial(parents: list[Run]) -> None:
    other = parents[0].path.parent.parent
    run = Run.create(
        session_path(trial_path(other, 1), 0), name="toy", spec=parents[0].spec, seed=7, session=0, threads=1
    )
    with pytest.raises(UsageError, match="a fork continues one trial, and there are 2 here"):
        experiment_of([*parents, run])


def test_a_fork_keeps_the_evaluation_seeds_of_its_parent(parents: list[Run], tmp_path: Path) -> None:
    """Only those were kept out of the parent's training."""
    seeds = {"eval_seed": 1_000_000, "eval_episodes": 10, "final_episodes": 100}
    for run in parents:
        run.spec["meta"].update(seeds)
    make_fork(parents, tmp_path / "fine", meta__final_episodes=1000, env__max_frame=200)
    for change in ({"meta__eval_seed": 5}, {"meta__final_episodes": 1001}):
        with pytest.raises(UsageError, match="out of training"):
            make_fork(parents, tmp_path / "runs", env__max_frame=200, **change)
