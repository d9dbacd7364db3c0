"""Forks as run directories: from the checkpoint of the parent at the rung, whatever became of the parent since."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from operant.errors import RunError
from operant.hpo.keep import hold_for_forks
from operant.hpo.schedulers import Fork
from operant.hpo.trials import make_forks, make_runs
from operant.run.checkpoint import Checkpoint, adopt, list_checkpoints
from operant.run.progress import Progress
from operant.run.run import Run
from operant.spec.schema import Spec

SPEC = Spec.model_validate({"name": "bred", "meta": {"max_session": 2, "keep_checkpoints": 1, "save_frequency": 10}})


def _train(run: Run, until: int) -> None:
    """A session that saves every ten frames who it is and where."""
    with run.session(until) as session:
        at = session.latest.at if session.latest else Progress()
        while not session.done(at):
            at = Progress(at.frames + 10, at.updates + 1, 0, 0, 0.0)
            session.save(at, lambda folder, at=at: (folder / "who.json").write_text(f"[{run.seed}, {at.frames}]"))


def _content(run: Run) -> list[list[int]]:
    return [json.loads((each.path / "who.json").read_text()) for each in list_checkpoints(run.checkpoints)]


@pytest.fixture
def parents(tmp_path: Path) -> list[Run]:
    runs = make_runs(tmp_path, 3, SPEC)
    for run in runs:
        _train(run, 45)
    hold_for_forks(runs)
    for run in runs:
        _train(run, 95)
    return runs


def test_each_session_goes_on_from_its_own_where_that_paused(parents: list[Run], tmp_path: Path) -> None:
    assert [_content(run) for run in parents] == [[[0, 50], [0, 100]], [[1, 50], [1, 100]]]
    forks = make_forks(tmp_path, 8, SPEC, Fork(3, 5), 45)
    assert [_content(run) for run in forks] == [[[0, 50]], [[1, 50]]]
    assert [
        (run.seed, run.parent and run.parent["frames"], run.parent and run.parent["replaces"]) for run in forks
    ] == [
        (0, 50, 5),
        (1, 50, 5),
    ]


def test_a_fork_that_was_half_made_is_made_whole(
    parents: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(start: Checkpoint, checkpoints: Path) -> Checkpoint:
        if checkpoints.parent.name == "session_1":
            raise KeyboardInterrupt
        return adopt(start, checkpoints)

    with monkeypatch.context() as patch:
        patch.setattr("operant.launch.fork.adopt", killed)
        with pytest.raises(KeyboardInterrupt):
            make_forks(tmp_path, 8, SPEC, Fork(3, 5), 45)
    forks = make_forks(tmp_path, 8, SPEC, Fork(3, 5), 45)
    assert [_content(run) for run in forks] == [[[0, 50]], [[1, 50]]]
    # One that has trained since stays as it is.
    _train(forks[0], 70)
    assert [_content(run)[-1] for run in make_forks(tmp_path, 8, SPEC, Fork(3, 5), 45)] == [[0, 70], [1, 50]]


def test_a_parent_without_its_checkpoint_is_one_line(parents: list[Run], tmp_path: Path) -> None:
    with pytest.raises(RunError, match="its checkpoint from there is gone"):
        make_forks(tmp_path, 8, SPEC, Fork(3, 5), 2000)
