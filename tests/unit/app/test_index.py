from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks.many_runs import Size, write_tree
from operant.app import index as module
from operant.app.index import Index
from operant.app.lines import differing_settings, lines_of, metric_names
from operant.errors import UsageError
from operant.report.tables import experiment_rows
from tests.unit.report.trajectories import play, write_experiment, write_rows


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tree(tmp_path_factory.mktemp("index"), 14, Size(2, 30))


def everything(index: Index) -> dict[str, dict]:
    found: dict[str, dict] = {}
    version, unread = 0, 1
    while unread:
        told = index.changes(version)
        version, unread = told["version"], told["unread"]
        found |= {row["id"]: row for row in told["rows"]}
    return found


def test_the_list_says_what_operant_runs_says(root: Path) -> None:
    found = everything(Index(root))
    told = {row.path.relative_to(root).as_posix(): row for row in experiment_rows(root)}
    assert found.keys() == told.keys()
    for name, row in told.items():
        score = None if row.score is None else row.score.text()
        shown = found[name]["score"]
        assert (shown and shown["text"], found[name]["frames"]) == (score, row.frames)
        assert found[name]["state"] == row.state
    search = found["ppo_cartpole_search/20261001-001200"]
    assert (search["trials"], search["sessions"], search["search"]) == (24, 24, True)
    assert not found["dqn_cartpole/20261001-001300"]["rows"]


def test_a_little_time_gives_the_newest_first_and_nothing_twice(root: Path) -> None:
    index = Index(root)
    first = index.changes(0, seconds=0.0)
    assert first["unread"] > 0
    assert first["rows"][0]["id"] == "dqn_cartpole/20261001-001300"
    everything(index)
    assert index.changes(index.version)["rows"] == []


def test_only_what_changed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DISCOVERY_SECONDS", 0.0)
    place = write_experiment(tmp_path, "games", "20260101-000000", [play(3)])
    write_experiment(tmp_path, "games", "20260102-000000", [play(3)])
    index = Index(tmp_path)
    everything(index)
    version = index.version
    write_rows(place / "trial_000/session_0/metrics.jsonl", [{"frames": 9000, "final/score": 7.0}])
    (row,) = index.changes(version)["rows"]
    assert (row["id"], row["frames"], row["score"]["point"]) == ("games/20260101-000000", 9000, 7.0)
    (place / "tags.json").write_text(json.dumps({"tags": ["old"], "archived": True}))
    (row,) = index.changes(index.version)["rows"]
    assert (row["tags"], row["archived"]) == (["old"], True)
    os.rename(place, tmp_path / ".away")
    assert index.changes(index.version)["gone"] == ["games/20260101-000000"]


def test_a_damaged_run_is_a_row_that_says_so(tmp_path: Path) -> None:
    place = write_experiment(tmp_path, "games", "20260101-000000", [play(1)])
    (place / "trial_000/session_0/run.json").write_text("{")
    (row,) = everything(Index(tmp_path)).values()
    assert row["state"] == "unreadable"
    assert "damaged" in row["error"]


@pytest.mark.parametrize("name", ["..", "../..", "/etc", "", "games/../../etc"])
def test_a_name_cannot_lead_out_of_the_folder(root: Path, name: str) -> None:
    with pytest.raises(UsageError, match="there is no run"):
        Index(root).path_of(name)


def test_runs_are_grouped_by_a_setting_and_a_search_is_its_best_trial(root: Path) -> None:
    index = Index(root)
    runs = ["ppo_cartpole/20261001-000000", "ppo_acrobot/20261001-000400", "dqn_cartpole/20261001-000100"]
    assert set(differing_settings(index, runs)) == {"env.name", "agent.algorithm.name"}
    by_algorithm = {line.label: len(line.files) for line in lines_of(index, runs, "algorithm")}
    assert by_algorithm == {"ppo": 4, "dqn": 2}
    by_setting = [line.label for line in lines_of(index, runs, "env.name")]
    assert by_setting == ["name CartPole-v1", "name Acrobot-v1"]
    search = "ppo_cartpole_search/20261001-001200"
    (line,) = lines_of(index, [search])
    assert len(line.files) == 1
    assert len(lines_of(index, [search], "trial")) == 24
    assert {"train/return", "eval/score", "policy/kl"} <= set(metric_names(line.files))
