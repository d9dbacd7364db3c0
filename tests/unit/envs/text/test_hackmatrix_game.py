"""Whole games of the grid hacking game as dialogues."""

from __future__ import annotations

import re

import pytest

from operant.envs.text.hackmatrix_game import HackMatrixGame
from operant.errors import UsageError


def board_of(style: str) -> str:
    task = HackMatrixGame(style=style)  # pyright: ignore[reportArgumentType]
    return task.begin(task.problems("eval")[0], 0).opening()[-1].text


def test_the_short_board_shows_every_cell_that_the_drawn_one_shows():
    drawn, short = board_of("words"), board_of("short")
    signs = re.compile(r"\[\w+\]\d|\(\d\)|[ce]\d|EXIT|~\d|@| S ")
    assert sorted(signs.findall(drawn.partition("legal actions")[0])) == sorted(
        signs.findall(short.partition("legal actions")[0].replace("|", " | "))
    )
    assert drawn.partition("legal actions")[2] == short.partition("legal actions")[2]
    assert len(short) < len(drawn) / 2


def test_the_short_board_says_where_you_are_and_where_the_exit_is():
    short = board_of("short")
    found = re.search(r"you \((\d),(\d)\), exit \((\d),(\d)\)", short)
    assert found is not None
    row, column, exit_row, exit_column = map(int, found.groups())
    lines = {int(line[0]): line[3:].split(" | ") for line in short.splitlines() if re.match(r"\d: ", line)}
    assert "@" in lines[row][column]
    assert "EXIT" in lines[exit_row][exit_column]


def test_an_answer_without_a_legal_action_costs_what_is_learnt_from_and_not_the_score():
    task = HackMatrixGame(fault_penalty=0.5)
    dialogue = task.begin(task.problems("train")[0], 0)
    for _ in range(3):
        assert dialogue.hear("I would like to win.").fault is not None
    verdict = dialogue.verdict()
    assert verdict.score == 0
    assert verdict.parts["final"] == verdict.parts["delta"] == -1.5
    assert verdict.parts["faults"] == 3


@pytest.mark.parametrize("arguments", [{"style": "long"}, {"fault_penalty": -1}, {"fault_penalty": "much"}])
def test_arguments_that_mean_nothing_are_refused(arguments: dict):
    with pytest.raises(UsageError, match="hackmatrix_game"):
        HackMatrixGame(**arguments)
