from __future__ import annotations

from operant.run.progress import Progress, is_timing, without_timing


def test_counters_survive_a_row():
    at = Progress(frames=10, updates=2, episodes=3, tokens=4, seconds=1.5)
    assert Progress.from_dict({**at.as_dict(), "loss/value": 0.1}) == at


def test_missing_counters_are_zero():
    assert Progress.from_dict({"frames": 7}) == Progress(frames=7)


def test_seconds_are_written_to_the_millisecond():
    assert Progress(seconds=1.23456789).as_dict()["seconds"] == 1.235


def test_only_clock_columns_are_timing():
    row = {
        "frames": 1,
        "seconds": 2.0,
        "time": "now",
        "perf/frames_per_second": 3.0,
        "train/return": 4.0,
        "performance": 5,
    }
    turns = {"turns": [{"text": "hi", "seconds": 0.5}], "took": 2.0}
    assert without_timing(turns) == {"turns": [{"text": "hi"}]}
    assert without_timing(row) == {"frames": 1, "train/return": 4.0, "performance": 5}
    assert is_timing("perf/updates_per_second")
    assert not is_timing("eval/seconds_alive")
