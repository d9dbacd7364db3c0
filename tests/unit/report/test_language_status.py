"""What the terminal tells of a language run while it trains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from operant.report.language_status import Sample, SampleReader, signals_of, signals_text
from operant.report.live import live_lines, status_text
from operant.report.status import Follower, SessionStatus


def episode(prompt: str, completion: str, score: float) -> dict[str, Any]:
    turns = [{"role": "user", "text": prompt}, {"role": "assistant", "text": completion}]
    return {"split": "train", "score": score, "turns": turns}


def write(path: Path, *rows: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def test_the_distance_to_the_reference_comes_before_that_of_an_update() -> None:
    row = {"tokens": 100, "policy/kl": 0.0, "policy/reference_kl": 0.25, "policy/entropy": 1.5, "train/length": 34.2}
    assert signals_text(signals_of(row)) == "KL 0.2500  entropy 1.500  length 34.20"
    assert signals_of({**row, "tokens": 0}) == {}, "a run on Gymnasium makes no tokens"


def test_the_newest_answer_is_the_sample(tmp_path: Path) -> None:
    file = tmp_path / "episodes.jsonl"
    reader = SampleReader(tmp_path)
    assert reader.read() is None
    write(file, episode("1 + 1 =", "3", 0.0), episode("2 + 2 =", "4", 1.0), {"score": 1.0, "turns": []})
    assert reader.read() == Sample("2 + 2 =", "4", 1.0)
    assert reader.read() == Sample("2 + 2 =", "4", 1.0)


def test_a_sample_is_one_line_that_fits_and_cannot_move_the_cursor() -> None:
    hostile = Sample("question " * 50 + "the end?", "\x1b[2J\nanswer\r" + "x" * 500, 0.5)
    line = hostile.line(80)
    assert len(line) <= 80
    assert line.isprintable()
    assert "the end?  ->  [2J answer xxx" in line
    assert line.endswith("...  (reward 0.5000)")


def test_both_views_show_signals_and_sample(tmp_path: Path) -> None:
    row = {"frames": 128, "tokens": 900, "seconds": 2.0, "train/return": 0.5, "policy/kl": 0.01, "train/length": 7.0}
    write(tmp_path / "metrics.jsonl", row)
    write(tmp_path / "episodes.jsonl", episode("copy:ab=", "ab", 1.0))
    status = Follower(tmp_path).look()
    assert "return 0.5000  KL 0.0100  length 7.000" in status_text(status)
    other = SessionStatus("running", 1, 2, None, None, None)
    assert live_lines(["session_0", "session_1"], [status, other], 100)[-2:] == [
        "session_0  KL 0.0100  length 7.000",
        "sample  copy:ab=  ->  ab  (reward 1.000)",
    ]
