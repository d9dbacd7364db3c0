"""Traces can be read at any time, name their rows, stay small, and survive a kill."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from operant.engines.language.telemetry.prompt_accounting import PromptAccounting
from operant.engines.language.telemetry.trace import Trace
from operant.run.layout import PROMPTS_FILE
from operant.run.metrics import read_rows
from operant.run.prompt_journal import PromptJournal


def read_trace(path: Path) -> list[dict[str, Any]]:
    """The events of a trace, which has no closing bracket: its viewers need none."""
    return json.loads(path.read_text().rstrip(",\n") + "]")


def test_spans_and_prompts_have_rows_of_their_own(tmp_path: Path) -> None:
    trace = Trace(tmp_path)
    with trace.span("generate", "generator", prompts=2):
        trace.prompt("b", 7, "taken", problem="copy/train/7")
    trace.prompt("e", 7, "trained")
    trace.flush()
    rows = read_trace(tmp_path / "trace.json")
    lanes = {row["args"]["name"]: row["tid"] for row in rows if row["name"] == "thread_name"}
    (span,) = (row for row in rows if row["ph"] == "X")
    assert span["tid"] == lanes["generator"]
    assert span["dur"] > 0
    assert span["args"] == {"prompts": 2}
    first, last = (row for row in rows if row.get("cat") == "prompt")
    assert (first["id"], last["id"]) == (7, 7)
    assert first["ts"] < last["ts"]
    assert abs(span["ts"] / 1e6 - time.time()) < 60


def test_the_next_attempt_goes_on_where_a_kill_cut_an_event(tmp_path: Path) -> None:
    trace = Trace(tmp_path)
    trace.mark("one", "trainer")
    trace.flush()
    with (tmp_path / "trace.json").open("a") as file:
        file.write('{"ph":"i","na')
    second = Trace(tmp_path, attempt=2)
    second.mark("two", "trainer")
    second.flush()
    assert [(row["name"], row["pid"]) for row in read_trace(tmp_path / "trace.json") if row["ph"] == "i"] == [
        ("one", 1),
        ("two", 2),
    ]


def test_only_the_newest_two_pieces_are_kept(tmp_path: Path) -> None:
    trace = Trace(tmp_path, limit=2000)
    for number in range(400):
        trace.mark(f"event {number}", "trainer")
        trace.flush()
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["earlier_trace.json", "trace.json"]
    assert all(file.stat().st_size < 2300 for file in files)
    rows = read_trace(tmp_path / "trace.json")
    assert rows[-1]["name"] == "event 399"
    assert any(row["name"] == "thread_name" for row in rows)


def test_every_prompt_taken_is_open_or_has_a_fate() -> None:
    accounting = PromptAccounting(Trace())
    for place in range(4):
        accounting.draw(place, f"p/{place}")
    accounting.note(2, "stale")
    accounting.redo(["p/3"])
    accounting.end(0, "trained")
    accounting.end(1, "dropped")
    assert accounting.open == [2, 3]
    accounting.leave()
    assert accounting.counts == {"drawn": 4, "stale": 1, "redone": 1, "trained": 1, "dropped": 1, "left": 2}
    with pytest.raises(KeyError):
        accounting.end(0, "trained")


def test_what_a_late_worker_says_after_the_end_is_not_written(tmp_path: Path) -> None:
    """Its generator was in the middle of a call; the prompt is left, and the journal has to balance."""
    journal = PromptJournal(tmp_path, attempt=1)
    accounting = PromptAccounting(Trace(), journal)
    accounting.draw(0, "sum/0")
    accounting.leave()
    accounting.note(0, "generated", tokens=5)
    journal.close()
    assert [row["event"] for row in read_rows(tmp_path / PROMPTS_FILE)] == ["drawn", "left"]
    assert accounting.counts == {"drawn": 1, "left": 1}
