from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from operant.run import layout


def test_paths_of_a_run():
    trial = layout.trial_path(Path("runs/x/1"), 2)
    session = layout.session_path(trial, 11)
    assert session.as_posix() == "runs/x/1/trial_002/session_11"
    assert layout.checkpoint_path(session / "checkpoints", 20480).name == "000000020480"
    assert layout.log_path(session, 3).name == "attempt_003.log"
    assert layout.provenance_path(session, 3).name == "attempt_003.json"


def test_stamps_sort_by_time():
    early, late = datetime(2026, 1, 31, 9, 5, 7), datetime(2026, 2, 1, 0, 0, 0)
    assert layout.stamp(early) == "20260131-090507"
    assert layout.stamp(early) < layout.stamp(late)


def test_numbered_folders_come_in_number_order_and_alone(tmp_path: Path):
    for name in ("session_10", "session_2", ".tmp-session_3", "session_x", "session_4.bak"):
        (tmp_path / name).mkdir()
    (tmp_path / "session_5").write_text("a file")
    assert [path.name for path in layout.session_paths(tmp_path)] == ["session_2", "session_10"]
    assert layout.session_paths(tmp_path / "nowhere") == []


def test_checkpoints_beyond_twelve_digits_stay_in_order(tmp_path: Path):
    for frames in (10**12, 999, 10**11):
        layout.checkpoint_path(tmp_path, frames).mkdir()
    (tmp_path / "latest").symlink_to("000000000999")
    (tmp_path / "000000000500.corrupt").mkdir()
    assert [int(path.name) for path in layout.checkpoint_paths(tmp_path)] == [999, 10**11, 10**12]


def test_paths_are_shown_as_one_would_type_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert layout.shown(tmp_path / "here" / "runs" / "x") == "runs/x"
    assert layout.shown(tmp_path / "elsewhere") == str(tmp_path / "elsewhere")
