from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from operant.errors import RunError
from operant.launch.prepare import reached, unfinished
from operant.run.checkpoint import publish
from operant.run.layout import LOCK_FILE
from operant.run.lock import RunLock
from operant.run.progress import Progress
from operant.run.run import Run

MakeTrial = Callable[..., list[Run]]


def save_at(run: Run, frames: int) -> None:
    publish(run.checkpoints, Progress(frames=frames), lambda folder: (folder / "weights").write_text("w"), None, {})


def test_every_session_has_its_own_seed_and_the_recorded_threads(make_trial: MakeTrial) -> None:
    runs = make_trial(max_session=3, seed=7, threads=2)
    assert [run.seed for run in runs] == [7, 8, 9]
    assert [run.path.name for run in runs] == ["session_0", "session_1", "session_2"]
    assert {Run.open(run.path).threads for run in runs} == {2}


def test_what_is_done_is_not_resumed(make_trial: MakeTrial) -> None:
    runs = make_trial()
    runs[1].record(state="done")
    assert [run.index for run in unfinished(runs)] == [0, 2]


def test_what_is_being_trained_is_refused(make_trial: MakeTrial) -> None:
    runs = make_trial()
    runs[2].record(state="running")
    lock = RunLock(runs[2].path / LOCK_FILE)
    lock.acquire()
    try:
        with pytest.raises(RunError, match="being trained right now") as refused:
            unfinished(runs)
        assert refused.value.place is not None
        assert Path(refused.value.place).name == "session_2"
    finally:
        lock.release()


def test_a_killed_session_counts_as_unfinished(make_trial: MakeTrial) -> None:
    run = make_trial(max_session=1)[0]
    run.record(state="running")
    assert unfinished([run]) == [run]


def test_until_is_reached_by_a_checkpoint_not_by_words(make_trial: MakeTrial) -> None:
    run = make_trial(max_session=1)[0]
    assert not reached(run, 50)
    save_at(run, 40)
    assert not reached(run, 50)
    save_at(run, 60)
    assert reached(run, 50)
    assert not reached(run)
