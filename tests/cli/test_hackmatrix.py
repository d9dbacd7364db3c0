"""The grid hacking game on the command line: played through a pipe, kept, and shown again."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Operant


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What is piped into the command."""
    source = io.StringIO("up\nleft\nnonsense\n")
    monkeypatch.setattr("sys.stdin", source)
    return source


@pytest.mark.usefixtures("typed")
def test_a_game_through_a_pipe(operant: Operant) -> None:
    played = operant("play", "hackmatrix", "--seed", "0")
    assert played.code == 0
    assert "There is no action 'nonsense'." in played.out
    assert played.out.endswith(
        "The input has ended before the game.\nseed 0: unfinished in stage 1 after 2 actions, score 0, reward 0.08\n"
    )
    assert played.err == "the same game: operant play hackmatrix --seed 0\n"


@pytest.mark.usefixtures("typed")
def test_a_game_as_one_document(operant: Operant) -> None:
    document = operant("play", "hackmatrix", "--seed", "0", "--json").document
    assert document["actions"] == [0, 2]
    assert (document["seed"], document["steps"], document["exit"]) == (0, 2, 0)


@pytest.mark.usefixtures("typed")
def test_a_game_is_kept_and_shown(operant: Operant, here: Path) -> None:
    assert operant("play", "hackmatrix", "--seed", "0", "--replay", "mine.json").code == 0
    shown = operant("hackmatrix", "replay", "mine.json")
    assert shown.out.count("seed 0   step ") == 3
    written = operant("hackmatrix", "replay", "mine.json", "--out", "mine.html")
    assert written.out == "1 episode written to mine.html\n"
    assert "<!doctype html>" in (here / "mine.html").read_text()
    facts = operant("hackmatrix", "replay", "mine.json", "--json").document
    assert facts["episodes"][0]["steps"] == 2


@pytest.mark.usefixtures("typed")
@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("play", "hackmatrix", "--replay", "there.json"), "there.json: the file exists already"),
        (("play", "hackmatrix", "--replay", "no/where.json"), "no/where.json: its folder does not exist"),
        (("hackmatrix", "replay", "there.json"), "there.json: this is no replay of HackMatrix-v0"),
    ],
)
def test_files_that_do_not_fit(operant: Operant, here: Path, words: tuple[str, ...], cause: str) -> None:
    (here / "there.json").write_text("{}")
    refused = operant(*words)
    assert refused.code == 2
    assert refused.err.startswith(cause)
    assert (here / "there.json").read_text() == "{}"
