from __future__ import annotations

from pathlib import Path

from operant.report.discovery import places
from tests.unit.report.trajectories import play, write_experiment, write_rows, write_session


def test_runs_newest_first_then_records_without_a_run(tmp_path: Path) -> None:
    for stamp in ("20260101-000000", "20260102-000000"):
        write_experiment(tmp_path, "games", stamp, [play(1)])
    records = tmp_path / "eval" / "model" / "20260103-000000"
    records.mkdir(parents=True)
    write_rows(records / "episodes.jsonl", [each.as_dict() for each in play(1)])
    names = ["games/20260102-000000", "games/20260101-000000", "eval/model/20260103-000000"]
    assert list(places(tmp_path)) == names


def test_a_session_without_an_experiment_is_found(tmp_path: Path) -> None:
    write_session(tmp_path / "tuning" / "first", {"name": "games"}, 0, play(1))
    assert list(places(tmp_path)) == ["tuning/first"]


def test_one_run_or_file_is_all_there_is(tmp_path: Path) -> None:
    run = write_experiment(tmp_path, "games", "20260101-000000", [play(1)])
    session = run / "trial_000" / "session_0"
    for path in (run, run / "trial_000", session, session / "episodes.jsonl"):
        assert places(path) == {path.name: path}


def test_an_empty_folder_has_none(tmp_path: Path) -> None:
    assert places(tmp_path) == {}
    assert places(tmp_path / "absent") == {}
