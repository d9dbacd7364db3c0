from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from operant.report.live import LiveView, PlainView, labels, live_lines, live_view, status_text
from operant.report.status import SessionStatus
from operant.run.lock import RunLock

Write = Callable[..., Path]


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def append(session: Path, **row: Any) -> None:
    with (session / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")


@pytest.fixture
def running(tmp_path: Path, write_session: Write):
    """A session without rows whose lock is held, as by a training process."""
    session = write_session(tmp_path / "session_0", returns=(), evals={}, final=None, state="running")
    lock = RunLock(session / "lock")
    lock.acquire()
    yield session
    lock.release()


def test_the_first_line_comes_within_a_second_and_before_any_file(tmp_path: Path) -> None:
    begun, stream = time.monotonic(), io.StringIO()
    with PlainView([tmp_path / "session_0", tmp_path / "session_1"], None, stream):
        assert stream.getvalue() == "session_0 waiting to start ...\nsession_1 waiting to start ...\n"
    assert time.monotonic() - begun < 1


def test_plain_lines_come_with_each_tenth(running: Path) -> None:
    clock, stream = Clock(), io.StringIO()
    view = PlainView([running], None, stream, clock=clock)
    view.refresh()
    for frames in range(50, 501, 50):
        clock.now += 1.5
        append(running, frames=frames, seconds=frames / 100)
        view.refresh()
    shares = [line.split()[1] for line in stream.getvalue().splitlines()]
    assert shares == ["0", "10", "20", "30", "40", "50"]


def test_plain_lines_are_never_closer_than_a_second_while_nothing_else_happens(running: Path) -> None:
    clock, stream = Clock(), io.StringIO()
    view = PlainView([running], None, stream, clock=clock)
    view.refresh()
    for frames in range(100, 1001, 100):
        clock.now += 0.05
        append(running, frames=frames, seconds=frames / 100)
        view.refresh()
    assert len(stream.getvalue().splitlines()) == 1


def test_a_silence_is_broken_after_ten_seconds_then_less_and_less_often(running: Path) -> None:
    clock, stream = Clock(), io.StringIO()
    view = PlainView([running], None, stream, clock=clock)
    spoken = []
    for second in range(3600):
        clock.now = float(second)
        before = len(stream.getvalue())
        view.refresh()
        if len(stream.getvalue()) > before:
            spoken.append(second)
    assert spoken[:5] == [0, 10, 30, 70, 150]
    assert spoken[-1] - spoken[-2] == 300
    assert len(spoken) < 20


def test_a_change_of_state_is_told_at_once_and_the_end_only_once(running: Path) -> None:
    clock, stream = Clock(), io.StringIO()
    view = PlainView([running], None, stream, clock=clock)
    view.refresh()
    document = json.loads((running / "run.json").read_text())
    (running / "run.json").write_text(json.dumps({**document, "state": "failed", "error": "disk full\nat step 3"}))
    for _ in range(5):
        clock.now += 20
        view.refresh()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[1].endswith("failed: disk full")


def test_a_line_says_everything_known() -> None:
    status = SessionStatus("running", 20_480, 51_200, 5120.0, 123.4, 200.0)
    assert status_text(status) == (
        " 40 %  20,480/51,200 frames  5.12k/s  6.0 s to go  return 123.4  eval 200.0  running"
    )
    assert status_text(SessionStatus("stopped", 10, None, None, None, None)) == "  0 %  10 frames  stopped"


def test_the_live_table_shows_each_session(tmp_path: Path, write_session: Write) -> None:
    done = write_session(tmp_path / "session_0")
    stream = Terminal()
    with LiveView([done, tmp_path / "session_1"], None, stream) as view:
        first = stream.getvalue()
        assert [status.state for status in view.refresh()] == ["done", "starting"]
    assert "session_0" in first
    for text in ("session_1", "starting", "1k/1k", "480.0", "400.0", "done"):
        assert text in first


def test_the_view_suits_the_stream(tmp_path: Path) -> None:
    assert isinstance(live_view([tmp_path], None, Terminal()), LiveView)
    assert isinstance(live_view([tmp_path], None, io.StringIO()), PlainView)


def test_labels_are_as_short_as_they_can_be() -> None:
    trial = Path("runs/ppo/20250101-000000/trial_000")
    assert labels([trial / "session_0", trial / "session_1"]) == ["session_0", "session_1"]
    other = trial.with_name("trial_001")
    assert labels([trial / "session_0", other / "session_0"]) == ["trial_000/session_0", "trial_001/session_0"]


def test_lines_fit_the_terminal_and_the_bar_takes_what_is_left() -> None:
    statuses = [
        SessionStatus("running", 20_480, 51_200, 5120.0, 187.25, 312.0),
        SessionStatus("failed", 51_100, 51_200, None, None, None, "disk full\nmore"),
    ]
    names = ["session_0", "session_1"]
    assert live_lines(names, statuses, 80, "#.") == [
        "session    progress            frames  per s  to go  return   eval  state",
        "session_0  ##.....  40 %  20.5k/51.2k  5.12k   0:06   187.2  312.0  running",
        "session_1  ######.  99 %  51.1k/51.2k      -      -       -      -  failed",
        "session_1: disk full",
    ]
    assert max(map(len, live_lines(names, statuses, 100)[:3])) < 100
    assert "#" not in "".join(live_lines(names, statuses, 66, "#."))
