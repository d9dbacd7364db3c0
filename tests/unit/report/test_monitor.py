from __future__ import annotations

from pathlib import Path

from operant.report.monitor import RunStatus, monitor_lines, sparkline


def status(**changes: object) -> RunStatus:
    facts = {
        "name": "ppo/1", "path": Path("ppo/1"), "state": "running", "doing": "running", "sessions": 2, "running": 2,
        "frames": 500, "total": 1000, "rate": 100.0, "eta": 5.0, "score": 1.5, "train_return": 1.25,
        "curve": (1.0, 2.0), "alerts": (), "error": None,
    }  # fmt: skip
    return RunStatus(**{**facts, **changes})  # pyright: ignore[reportArgumentType]


def test_a_sparkline_runs_from_the_lowest_to_the_highest() -> None:
    assert sparkline([]) == ""
    assert sparkline([3.0]) == "▁"
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([5, 5, 5]) == "▁▁▁"
    assert len(sparkline(list(range(1000)), width=16)) == 16


def test_no_line_is_wider_than_the_terminal_and_the_state_stays() -> None:
    found = [status(), status(name="a" * 30, alerts=("health: " + "x" * 200,), error="boom\nmore")]
    for width in (160, 100, 80, 60):
        lines = monitor_lines(found, width)
        assert max(map(len, lines)) <= width
        assert lines[1].startswith("ppo/1")
        assert "running" in lines[1]
    assert "▁█" in monitor_lines(found, 160)[1]
    assert "▁█" not in monitor_lines(found, 80)[1]
    assert monitor_lines(found, 160)[3] == f"{'a' * 30}: boom"


def test_nothing_to_watch_is_said() -> None:
    assert "nothing runs here" in monitor_lines([], 80)[0]
