from __future__ import annotations

from pathlib import Path

import pytest

from operant.app.routes import GET, POST, Api
from operant.errors import UsageError
from tests.unit.report.trajectories import play, write_experiment, write_rows


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_experiment(tmp_path_factory.mktemp("runs"), "games", "20260101-000000", [play(3), play(2)])


@pytest.mark.parametrize("part", ["..", ".", "trial_000", "trial_000/session_0", "trial_000/session_0/episodes.jsonl"])
def test_everything_answers_for_whatever_the_app_was_opened_on(experiment: Path, part: str) -> None:
    api = Api((experiment / part).resolve())
    (row,) = api.runs({})["rows"]
    assert row["episodes"] > 0
    for name in GET:
        getattr(api, name)({"run": row["id"]})
    for name in POST:
        getattr(api, name)({"runs": [row["id"]], "metric": "train/return"})
    assert api.episodes({"run": row["id"]})["count"] in (3, 5)


def test_a_record_of_a_bare_model_is_listed(tmp_path: Path) -> None:
    (tmp_path / "eval" / "model").mkdir(parents=True)
    write_rows(tmp_path / "eval" / "model" / "episodes.jsonl", [each.as_dict() for each in play(2)])
    api = Api(tmp_path)
    (row,) = api.runs({})["rows"]
    assert (row["id"], row["state"]) == ("eval/model", "record")
    assert api.episodes({"run": "eval/model"})["count"] == 2


def test_mistakes_are_told(experiment: Path) -> None:
    api = Api(experiment)
    name = experiment.name
    with pytest.raises(UsageError, match="lacks run"):
        api.run({})
    with pytest.raises(UsageError, match="lacks runs"):
        api.chosen({"runs": name})
    with pytest.raises(UsageError, match="no axis"):
        api.series({"runs": [name], "metric": "train/return", "x": "moons"})
