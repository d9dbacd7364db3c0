"""What is due at which frame, whatever steps the frames come in."""

from __future__ import annotations

from typing import Any

import pytest

from operant.run.schedule import Kind, Schedule

META: dict[str, Any] = {"log_frequency": 10, "eval_frequency": 25, "save_frequency": 50, "save_minutes": None}


def begun(frames: int = 0, until: int | None = None, **meta: Any) -> Schedule:
    schedule = Schedule(META | meta, 100, until)
    schedule.start(frames, is_saved=frames > 0)
    return schedule


@pytest.mark.parametrize(("kind", "frames"), [("log", [12, 24, 30, 42, 54]), ("eval", [30, 54]), ("save", [54])])
def test_a_kind_is_due_where_a_multiple_was_passed(kind: Kind, frames: list[int]) -> None:
    schedule = begun()
    assert [at for at in range(6, 60, 6) if schedule.due(kind, at, stop=False)] == frames


def test_a_resumed_session_is_due_at_the_same_frames() -> None:
    whole, resumed = begun(), begun(48)
    due = [at for at in range(6, 121, 6) if whole.due("log", at, stop=False)]
    assert [at for at in range(54, 121, 6) if resumed.due("log", at, stop=False)] == [at for at in due if at > 48]


def test_the_end_is_saved_once() -> None:
    schedule = begun(until=30)
    assert schedule.due("save", 30, stop=False)
    schedule.saved(30)
    assert not schedule.due("save", 30, stop=False)
    assert schedule.done(30, stop=False)


def test_a_stop_after_a_save_that_was_not_due_waits_for_the_next_update() -> None:
    schedule = begun()
    assert not schedule.due("save", 6, stop=False)
    assert not schedule.done(6, stop=True)
    assert schedule.due("save", 12, stop=True)
    schedule.saved(12)
    assert schedule.done(12, stop=True)


def test_a_requested_save_is_due_once() -> None:
    schedule = begun()
    schedule.save_requested = True
    assert schedule.due("save", 6, stop=False)
    schedule.saved(6)
    assert not schedule.due("save", 12, stop=False)


def test_minutes_without_a_checkpoint_make_one_due() -> None:
    assert begun(save_minutes=1e-12).due("save", 6, stop=False)
    assert not begun(save_minutes=60).due("save", 6, stop=False)
