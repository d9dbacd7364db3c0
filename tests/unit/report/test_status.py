from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from operant.report.status import Follower
from operant.run.lock import RunLock

Write = Callable[..., Path]


def append(session: Path, **row: Any) -> None:
    with (session / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")


def change(session: Path, **fields: Any) -> None:
    document = json.loads((session / "run.json").read_text())
    (session / "run.json").write_text(json.dumps({**document, **fields}))


@pytest.fixture
def running(tmp_path: Path, write_session: Write):
    """A session without rows whose lock is held, as by a training process."""
    session = write_session(tmp_path / "session_0", returns=(), evals={}, final=None, state="running")
    lock = RunLock(session / "lock")
    lock.acquire()
    yield session
    lock.release()


def test_a_directory_that_does_not_exist_yet_is_starting(tmp_path: Path, write_session: Write) -> None:
    follower = Follower(tmp_path / "session_0", until=300)
    status = follower.look()
    assert (status.state, status.frames, status.total, status.rate, status.eta) == ("starting", 0, 300, None, None)
    write_session(tmp_path / "session_0", state="new", returns=(), evals={}, final=None)
    assert follower.look().state == "starting"


def test_rate_and_time_to_go_come_from_the_newest_rows(running: Path) -> None:
    follower = Follower(running)
    follower.look()
    append(running, frames=100, seconds=10.0)
    append(running, frames=200, seconds=12.0)
    status = follower.look()
    assert (status.state, status.frames, status.total) == ("running", 200, 1000)
    assert status.rate == pytest.approx(50)
    assert status.eta == pytest.approx(16)
    assert status.share == pytest.approx(0.2)


def test_old_rows_fall_out_of_the_rate(running: Path) -> None:
    follower = Follower(running)
    follower.look()
    for frames, seconds in ((10, 100.0), (20, 200.0), (120, 220.0), (320, 240.0)):
        append(running, frames=frames, seconds=seconds)
    # The last 20 s saw 200 frames; the slow start is forgotten.
    assert follower.look().rate == pytest.approx(10)


def test_the_first_row_uses_what_the_engine_measured(running: Path) -> None:
    append(running, frames=100, seconds=10.0, **{"perf/frames_per_second": 77.0})
    assert Follower(running).look().rate == 77.0


def test_after_a_resume_only_new_frames_count(running: Path) -> None:
    append(running, frames=400, seconds=4.0, **{"perf/frames_per_second": 100.0})
    append(running, frames=500, seconds=5.0, **{"perf/frames_per_second": 100.0})
    follower = Follower(running)
    assert follower.look().rate == 100.0
    # The resume cut the file back to its checkpoint and trains on, ten times slower.
    lines = (running / "metrics.jsonl").read_text().splitlines(keepends=True)
    (running / "metrics.jsonl").write_text(lines[0])
    assert follower.look().frames == 400
    append(running, frames=410, seconds=5.0)
    status = follower.look()
    assert status.frames == 410
    assert status.rate == pytest.approx(10)


def test_rows_of_earlier_attempts_are_no_part_of_the_rate(running: Path) -> None:
    for frames in range(100, 501, 100):
        append(running, frames=frames, seconds=frames / 100)
    follower = Follower(running)
    assert follower.look().rate is None
    append(running, frames=510, seconds=7.0)
    assert follower.look().rate == pytest.approx(5)


def test_a_cut_that_was_missed_shows_by_its_frames(running: Path) -> None:
    follower = Follower(running)
    append(running, frames=500, seconds=5.0, **{"train/return": 90.0})
    follower.look()
    append(running, frames=400, seconds=4.0)
    status = follower.look()
    assert (status.frames, status.train_return) == (400, None)


def test_returns_stay_known_between_rows_that_carry_them(running: Path) -> None:
    follower = Follower(running)
    append(running, frames=100, seconds=1.0, **{"train/return": 20.0})
    append(running, frames=100, seconds=1.0, **{"eval/score": 30.0})
    append(running, frames=200, seconds=2.0, **{"train/return": None})
    status = follower.look()
    assert (status.train_return, status.eval_score) == (20.0, 30.0)


def test_final_evaluation_wins(running: Path) -> None:
    append(running, frames=100, **{"eval/score": 30.0})
    append(running, frames=100, **{"final/score": 35.0})
    assert Follower(running).look().eval_score == 35.0


def test_an_ended_session_has_no_time_to_go(tmp_path: Path, write_session: Write) -> None:
    done = Follower(write_session(tmp_path / "a")).look()
    assert (done.state, done.share, done.eta, done.over) == ("done", 1.0, None, True)
    failed = Follower(write_session(tmp_path / "b", state="failed", error="RunError: disk full")).look()
    assert (failed.state, failed.error, failed.over) == ("failed", "RunError: disk full", True)


def test_a_damaged_run_file_is_told(tmp_path: Path, write_session: Write) -> None:
    session = write_session(tmp_path / "session_0")
    (session / "run.json").write_text("{")
    status = Follower(session).look()
    assert status.state == "failed"
    assert "damaged" in (status.error or "")


def test_a_launched_session_is_starting_until_its_new_attempt_shows(tmp_path: Path, write_session: Write) -> None:
    session = write_session(tmp_path / "session_0", state="stopped", final=None, attempts=1)
    launched, watched = Follower(session, launched=True), Follower(session)
    assert (launched.look().state, watched.look().state) == ("starting", "stopped")
    change(session, state="failed", attempts=2)
    assert launched.look().state == "failed"


def test_a_launched_session_that_is_done_says_so(tmp_path: Path, write_session: Write) -> None:
    assert Follower(write_session(tmp_path / "session_0"), launched=True).look().state == "done"
