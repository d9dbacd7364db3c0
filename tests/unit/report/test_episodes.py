from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from operant.errors import UsageError
from operant.report.episodes import Catalogue, EpisodeFile, holds_episodes, newest_first
from tests.unit.report.trajectories import play, search, training, write_experiment, write_rows

ROW = {"env": "blotto", "split": "eval", "seed": 0, "score": 0.5, "length": 1, "ended": "terminated"}


def names(file: EpisodeFile) -> list[str]:
    return [entry.name for entry in file.entries]


def rows_of(count: int, **details: Any) -> list[dict[str, Any]]:
    return [{"frames": number, **ROW, **details} for number in range(count)]


@pytest.fixture
def file(tmp_path: Path) -> EpisodeFile:
    return EpisodeFile(write_rows(tmp_path / "episodes.jsonl", rows_of(3)))


def test_an_episode_is_named_by_its_id_or_else_by_its_line(tmp_path: Path) -> None:
    rows = [{**ROW}, {**ROW, "id": "a"}, {**ROW}, {**ROW, "id": "a"}, {**ROW, "id": "3"}]
    file = EpisodeFile(write_rows(tmp_path / "episodes.jsonl", rows))
    file.refresh()
    assert names(file) == ["1", "a", "3", "a:4", "3:5"]


def test_a_line_that_is_still_being_written_waits(file: EpisodeFile) -> None:
    whole = json.dumps(ROW).encode() + b"\n"
    with file.path.open("ab") as growing:
        growing.write(whole[:20])
        growing.flush()
        file.refresh()
        assert (names(file), file.damaged) == (["1", "2", "3"], 0)
        growing.write(whole[20:])
    file.refresh()
    assert (names(file), file.damaged) == (["1", "2", "3", "4"], 0)


def test_only_new_lines_are_read(file: EpisodeFile) -> None:
    file.refresh()
    first = file.entries[0]
    write_rows(file.path, rows_of(1))
    file.refresh()
    assert file.entries[0] is first
    assert names(file) == ["1", "2", "3", "4"]


def test_a_file_that_a_resume_cut_back_is_read_anew(file: EpisodeFile) -> None:
    file.refresh()
    file.path.unlink()
    write_rows(file.path, rows_of(5, score=0.9))
    file.refresh()
    assert [entry.score for entry in file.entries] == [0.9] * 5


def test_a_file_that_is_gone_has_no_episodes(file: EpisodeFile) -> None:
    file.refresh()
    file.path.unlink()
    file.refresh()
    assert names(file) == []


@pytest.mark.parametrize(
    "line", ["no json", "[1, 2]", '"words"', '{"env": "x"}', json.dumps({**ROW, "turns": [{"text": "nobody"}]})]
)
def test_a_line_that_is_no_episode_is_counted_and_passed_over(tmp_path: Path, line: str) -> None:
    path = tmp_path / "episodes.jsonl"
    path.write_text(f"{line}\n\n{json.dumps(ROW)}\n")
    file = EpisodeFile(path)
    file.refresh()
    assert (names(file), file.damaged) == (["3"], 1)


def test_an_entry_tells_what_an_episode_was(tmp_path: Path) -> None:
    episodes = list(training(0))
    catalogue = Catalogue.open(write_rows(tmp_path / "episodes.jsonl", [each.as_dict() for each in episodes]))
    for entry, episode in zip(catalogue.entries, episodes, strict=True):
        spoken = [turn for turn in episode.turns if turn.role == "assistant"]
        assert (entry.name, entry.env, entry.score, entry.version) == (
            episode.id,
            episode.env,
            episode.score,
            episode.version,
        )
        assert (entry.turns, entry.tokens) == (len(spoken), sum(turn.tokens for turn in spoken))
        assert entry.faults == sum(turn.fault is not None for turn in episode.turns)
    assert catalogue.read(catalogue.entries[7]) == episodes[7]


def test_the_version_may_stand_among_the_parts(tmp_path: Path) -> None:
    row = {**ROW, "parts": {"version": 12.0}}
    catalogue = Catalogue.open(write_rows(tmp_path / "episodes.jsonl", [row]))
    assert catalogue.entries[0].version == 12


def test_episodes_of_several_sessions_have_their_session_in_their_name(tmp_path: Path) -> None:
    place = write_experiment(tmp_path, "games", "20260101-000000", [play(2), play(1)])
    catalogue = Catalogue.open(place)
    assert [catalogue.name_of(entry) for entry in catalogue.entries] == ["session_0/1", "session_0/2", "session_1/1"]
    assert catalogue.find("session_1/1").label == "session_1"
    assert catalogue.find("2").full_name == "session_0/2"
    with pytest.raises(UsageError, match="2 episodes are called '1': session_0/1, session_1/1"):
        catalogue.find("1")


def test_a_single_session_needs_no_label_but_knows_it(tmp_path: Path) -> None:
    place = write_experiment(tmp_path, "games", "20260101-000000", [play(2)])
    catalogue = Catalogue.open(place)
    assert catalogue.name_of(catalogue.entries[0]) == "1"
    assert catalogue.find("session_0/2") is catalogue.find("2")


def test_evaluations_after_training_are_found_too(tmp_path: Path) -> None:
    place = write_experiment(tmp_path, "games", "20260101-000000", [play(1)])
    write_rows(place / "trial_000/session_0/eval.jsonl", [each.as_dict() for each in search(3)])
    catalogue = Catalogue.open(place / "trial_000/session_0")
    assert [catalogue.name_of(entry) for entry in catalogue.entries] == ["1", "eval/n0", "eval/n1", "eval/n2"]


def test_trials_are_told_apart(tmp_path: Path) -> None:
    place = write_experiment(tmp_path, "games", "20260101-000000", [play(1)])
    write_rows_into = place / "trial_001/session_0"
    write_rows_into.mkdir(parents=True)
    write_rows(write_rows_into / "episodes.jsonl", rows_of(1))
    catalogue = Catalogue.open(place)
    assert [entry.full_name for entry in catalogue.entries] == ["trial_000/session_0/1", "trial_001/session_0/1"]


def test_a_session_that_begins_later_is_found(tmp_path: Path) -> None:
    place = write_experiment(tmp_path, "games", "20260101-000000", [play(1)])
    catalogue = Catalogue.open(place)
    later = place / "trial_000/session_1"
    later.mkdir()
    write_rows(later / "episodes.jsonl", rows_of(1))
    catalogue.refresh()
    assert [entry.full_name for entry in catalogue.entries] == ["session_0/1", "session_1/1"]


def test_an_unknown_name_brings_the_nearest(tmp_path: Path) -> None:
    catalogue = Catalogue.open(write_experiment(tmp_path, "search", "20260101-000000", [search()]))
    with pytest.raises(UsageError, match=r"there is no episode 'n99'; did you mean n9\?") as told:
        catalogue.find("n99")
    assert str(told.value.remedy).endswith("--episodes")
    with pytest.raises(UsageError, match="there are 15, the last is n14"):
        catalogue.find("something else")


def test_a_run_without_episodes_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no episode was written here yet"):
        Catalogue.open(tmp_path).find("1")
    assert not holds_episodes(tmp_path)


def test_newest_first_goes_by_training_and_then_by_line(tmp_path: Path) -> None:
    rows = [{"frames": frames, **ROW} for frames in (0, 64, 64)]
    catalogue = Catalogue.open(write_rows(tmp_path / "episodes.jsonl", rows))
    assert [entry.line for entry in newest_first(catalogue.entries)] == [3, 2, 1]


def test_ten_thousand_episodes_are_indexed_in_a_moment(tmp_path: Path) -> None:
    turns = [
        {"role": "assistant", "text": "x" * 100, "tokens": 20},
        {"role": "tool", "text": "y" * 300, "tokens": 50},
    ] * 6
    catalogue = Catalogue(write_rows(tmp_path / "episodes.jsonl", rows_of(10_000, turns=turns)))
    began = time.process_time()
    catalogue.refresh()
    assert time.process_time() - began < 3
    assert len(catalogue.entries) == 10_000
    began = time.process_time()
    catalogue.refresh()
    assert time.process_time() - began < 0.1
