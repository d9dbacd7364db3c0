from __future__ import annotations

from pathlib import Path

import pytest

from operant.run.journal import Journal
from operant.run.metrics import read_rows
from operant.run.progress import Progress

TELL = """
import sys
from pathlib import Path
from operant.run.journal import Journal
Journal(Path(sys.argv[1]), 1).event("note", "a word")
"""


def test_an_event_is_a_row_a_line_in_the_log_and_a_line_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    journal = Journal(tmp_path, 3)
    journal.event("note", "a word")
    journal.close()
    (row,) = read_rows(tmp_path / "events.jsonl")
    assert (row["attempt"], row["kind"], row["message"]) == (3, "note", "a word")
    assert (tmp_path / "logs" / "attempt_003.log").read_text().endswith("note: a word\n")
    assert capsys.readouterr().err == "note: a word\n"


def test_an_event_says_how_far_the_run_had_come(tmp_path: Path):
    journal = Journal(tmp_path, 1)
    journal.event("health", "policy/kl is 0.31", Progress(frames=2048, updates=8))
    journal.close()
    (row,) = read_rows(tmp_path / "events.jsonl")
    assert (row["frames"], row["updates"], row["message"]) == (2048, 8, "policy/kl is 0.31")


def test_a_launcher_that_writes_errors_to_the_same_log_gets_no_doubles(tmp_path: Path, start_with_errors_to):
    log = tmp_path / "logs" / "attempt_001.log"
    start_with_errors_to(log, "-c", TELL, tmp_path).wait(timeout=20)
    assert log.read_text().count("a word") == 1
    other = tmp_path / "console.log"
    start_with_errors_to(other, "-c", TELL, tmp_path).wait(timeout=20)
    assert other.read_text() == "note: a word\n"


def test_a_torn_event_of_a_killed_attempt_does_not_spoil_the_next(tmp_path: Path):
    (tmp_path / "events.jsonl").write_text('{"kind": "note"}\n{"ki')
    journal = Journal(tmp_path, 2)
    journal.event("note", "again")
    journal.close()
    assert [row["kind"] for row in read_rows(tmp_path / "events.jsonl")] == ["note", "note"]
