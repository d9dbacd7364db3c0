from __future__ import annotations

from pathlib import Path

import pytest

from operant.app.completions import MOST, completions
from operant.app.trajectories import Catalogues, comparison, episode_list, timeline, tree_details
from operant.errors import UsageError
from operant.report.episodes import Catalogue
from tests.unit.report.trajectories import play, write_experiment, write_rows, write_runs

SEARCH, RESEARCH = "search_blotto/20261115-183000", "grpo_research/20261115-180000"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_runs(tmp_path_factory.mktemp("app") / "runs")


def test_a_list_and_its_filters(runs: Path) -> None:
    catalogue = Catalogue.open(runs / RESEARCH)
    every = episode_list(catalogue, {})
    assert (every["count"], every["matching"], len(every["rows"])) == (765, 765, 500)
    some = episode_list(catalogue, {"task": "blotto", "split": "eval", "faulty": "1"})
    assert {(row["task"], row["split"]) for row in some["rows"]} == {("blotto", "eval")}
    assert min(row["faults"] for row in some["rows"]) == 1
    high = episode_list(catalogue, {"score": "0.9.."})
    assert 0 < high["matching"] < 765
    assert episode_list(catalogue, {"text": "no such words anywhere"})["rows"] == []
    with pytest.raises(UsageError, match="no range of numbers"):
        episode_list(catalogue, {"score": "nine"})


def test_a_timeline_and_its_neighbours(runs: Path) -> None:
    catalogue = Catalogue.open(runs / SEARCH)
    found = timeline(catalogue, "n9")
    assert (found["previous"], found["next"], found["in_tree"]) == ("n8", "n10", True)
    assert "continues n6" in found["about"]
    assert any(step["fault"] == "the command failed (exit 1)" for step in found["steps"])
    assert timeline(catalogue, None)["name"] == "n14"
    with pytest.raises(UsageError, match="did you mean n9"):
        timeline(catalogue, "n99")


def test_two_side_by_side(runs: Path) -> None:
    found = comparison(Catalogue.open(runs / SEARCH), "n1", "n2")
    assert found["parting"] == 2
    assert sum(row["same_opening"] for row in found["rows"]) == 1


def test_a_tree_and_the_node_that_is_chosen(runs: Path) -> None:
    catalogue = Catalogue.open(runs / SEARCH)
    found = tree_details(catalogue, None)
    assert found["nodes"][found["chosen"]]["name"] == "n12"
    chosen = tree_details(catalogue, "n4")
    assert chosen["nodes"][chosen["chosen"]]["name"] == "n4"
    assert tree_details(Catalogue.open(runs / RESEARCH), None)["nodes"] == []


def test_the_newest_words_come_first_and_can_be_opened(runs: Path) -> None:
    found = completions(runs / RESEARCH)
    assert found["count"] == 765
    assert len(found["samples"]) == MOST
    assert {sample["frames"] for sample in found["samples"]} == {3584}
    catalogue = Catalogue.open(runs / RESEARCH)
    for sample in found["samples"]:
        opened = timeline(catalogue, sample["place"])
        assert [turn["text"] for step in opened["steps"] for turn in step["turns"]] == [
            turn["text"] for turn in sample["turns"]
        ]


def test_games_have_no_words_and_damaged_lines_are_passed_over(tmp_path: Path) -> None:
    place = write_experiment(tmp_path, "games", "20260101-000000", [play(3)])
    assert completions(place) == {"count": 3, "samples": []}
    file = place / "trial_000/session_0/episodes.jsonl"
    with file.open("a") as damaged:
        damaged.write('no row\n{"env": "half')
    assert completions(place)["samples"] == []
    assert episode_list(Catalogues().open(place), {})["damaged"] == 1


def test_one_file_of_episodes_is_enough(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "mine.jsonl", [each.as_dict() for each in play(2)])
    assert episode_list(Catalogues().open(file), {})["count"] == 2
