"""Episodes in the terminal, and the command that starts the app."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from operant.app import server
from operant.install import install_extra
from tests.unit.report.trajectories import play, search, training, write_experiment, write_rows

if TYPE_CHECKING:
    from tests.cli.conftest import Golden, Operant


@pytest.fixture
def runs(here: Path) -> Path:
    write_experiment(here / "runs", "grpo", "20261115-180000", [list(training(seed)) for seed in range(2)])
    write_experiment(here / "runs", "search", "20261115-183000", [search()])
    return here / "runs"


def test_a_run_is_still_summed_up_and_points_to_its_episodes(operant: Operant, runs: Path) -> None:
    shown = operant("show", "grpo")
    assert shown.code == 0, shown.err
    assert "mean greedy return over 2 seeds" in shown.out
    assert "operant show runs/grpo/20261115-180000 --episodes" in shown.out


def test_the_list_of_episodes(operant: Operant, golden: Golden, runs: Path) -> None:
    shown = operant("show", "grpo", "--split", "eval", "--sort", "worst", "--limit", "4")
    assert shown.code == 0, shown.err
    golden("show/list", shown.out + shown.err)


def test_the_list_as_json(operant: Operant, runs: Path) -> None:
    told = operant("show", "grpo", "--errors", "--limit", "2", "--json").document
    assert [row["score"] for row in told["episodes"]] == [None, None]
    assert told["count"] > 2
    assert told["episodes"][0]["name"].startswith("session_")


def test_one_episode(operant: Operant, golden: Golden, runs: Path) -> None:
    shown = operant("show", "search#n9")
    assert shown.code == 0, shown.err
    golden("show/episode", shown.out)


def test_one_episode_as_json_is_the_row_with_its_name(operant: Operant, runs: Path) -> None:
    (row,) = operant("show", "search#n9", "--json").document["episodes"]
    assert (row["name"], row["parent"], row["env"]) == ("n9", "n6", "blotto")
    assert row["turns"][0]["role"] == "system"


def test_two_episodes_side_by_side(operant: Operant, golden: Golden, runs: Path) -> None:
    shown = operant("show", "search#n1", "search#n2")
    assert shown.code == 0, shown.err
    golden("show/two", shown.out)


def test_the_tree_of_a_search(operant: Operant, golden: Golden, runs: Path) -> None:
    shown = operant("show", "search", "--tree")
    golden("show/tree", shown.out)
    assert operant("show", "search#n14", "--tree").out == shown.out
    (tree,) = operant("show", "search", "--tree", "--json").document["trees"]
    assert (tree["best"], len(tree["nodes"])) == ("n12", 15)
    assert "none of them continues another" in operant("show", "grpo", "--tree").out


def test_long_outputs_are_folded_unless_full(operant: Operant, here: Path) -> None:
    row = {
        **play(1)[0].as_dict(),
        "turns": [{"role": "tool", "text": "\n".join(f"line {number}" for number in range(200))}],
    }
    write_rows(here / "mine.jsonl", [row])
    assert "182 lines more; --full shows them" in operant("show", "mine.jsonl#1").out
    assert operant("show", "mine.jsonl#1", "--full").out.count("line ") == 200


def test_a_file_or_a_folder_of_records_is_listed_by_itself(operant: Operant, here: Path) -> None:
    (here / "records").mkdir()
    write_rows(here / "records" / "episodes.jsonl", [each.as_dict() for each in play(3)])
    for place in ("records", "records/episodes.jsonl"):
        assert operant("show", place).out.count("CartPole-v1") == 3


def test_a_line_that_cannot_be_read_is_said(operant: Operant, here: Path) -> None:
    (here / "mine.jsonl").write_text("not a row\n")
    write_rows(here / "mine.jsonl", [each.as_dict() for each in play(1)])
    assert "note: 1 line of these files could not be read" in operant("show", "mine.jsonl").err


@pytest.mark.parametrize(
    ("words", "cause", "remedy"),
    [
        (("search#n99",), "there is no episode 'n99'; did you mean n9?", "--episodes"),
        (("serch#n1",), "there is no run 'serch' under runs; did you mean search", "`operant runs`"),
        (("grpo#e0-titanic-1",), "2 episodes are called 'e0-titanic-1'", "session_0/e0-titanic-1"),
        (("grpo", "--score", "high"), "'high' is no range of numbers", "--score 0.2..0.8"),
        (("grpo", "--ended", "won"), "no episode ends by 'won'", "--ended terminated or truncated or error"),
        (("grpo", "--episodes", "--sort", "odd"), "there is no order 'odd'", "--sort newest"),
        (("search#n1", "search"), "one episode is shown by itself, or two side by side", "operant show search#1"),
        (("search#n1", "search#n2", "search#n3"), "these are 3 things", "operant show search#1"),
        (("absent.jsonl",), "absent.jsonl: there is no such file", "`operant runs`"),
        (("grpo#session_0/e0-titanic-1", "--tree"), "is no part of a search", "--tree"),
    ],
)
def test_mistakes_are_told_with_a_way_out(
    operant: Operant, runs: Path, words: tuple[str, ...], cause: str, remedy: str
) -> None:
    shown = operant("show", *words)
    assert (shown.code, shown.out) == (2, "")
    assert cause in shown.err
    assert remedy in shown.err.partition("try: ")[2]


def test_the_app_says_what_it_needs(operant: Operant, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    shown = operant("app", "runs")
    assert shown.code == 2
    assert shown.err == (
        "the app needs starlette and uvicorn, which are not installed\n  try: " + install_extra("app") + "\n"
    )


def test_the_app_refuses_a_folder_that_is_not_there_and_a_port_that_is_taken(
    operant: Operant, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: name)
    assert operant("app", "absent").err.startswith("absent: there is no such folder or file")
    with socket.socket() as other:
        other.bind((server.HOST, 0))
        other.listen()
        taken = operant("app", "runs", "--port", str(other.getsockname()[1]))
    assert taken.code == 2
    assert "of 127.0.0.1 is in use" in taken.err
    assert "--port 0" in taken.err


def test_the_app_is_started_on_this_machine_only_and_tells_nobody(
    operant: Operant, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[Any, ...]] = []
    monkeypatch.setattr(server, "serve", lambda *given: started.append(given))
    told = operant("app", "runs", "--port", "0", "--no-browser", "--json").document
    ((listening, folder, allowed, browser),) = started
    assert told["url"] == listening.url
    listening.socket.close()
    assert told["url"].startswith("http://127.0.0.1:")
    assert (folder, browser) == (Path("runs"), False)
    assert allowed.hosts == {"localhost", "127.0.0.1", "::1"}
