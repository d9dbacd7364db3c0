"""A person's game: keys, undo, screens of any size; and a real terminal."""

from __future__ import annotations

import io
import os
import pty
import select
import subprocess
import sys
import time

import pytest

from operant.envs.hackmatrix.faces.interactive import KEYS, PROGRAM_KEYS, InteractiveGame
from operant.envs.hackmatrix.faces.play import play_in_pipe, press
from operant.envs.hackmatrix.reference import export
from tests.unit.envs.hackmatrix.forms import ROOT


def test_keys_do_not_collide() -> None:
    taken = [*KEYS, *PROGRAM_KEYS, "u", "n", "q", "?"]
    assert len(set(taken)) == len(taken)
    assert len(PROGRAM_KEYS) >= 23


def test_undo_brings_the_very_state_back() -> None:
    game = InteractiveGame(6)
    states = []
    for key in (" ", "d", "d", "a"):
        states.append(export(game.game))
        press(game, key)
    assert len(game.actions) == len(states)
    for state in reversed(states):
        press(game, "u")
        assert export(game.game) == state
    press(game, "u")
    assert game.message == "There is nothing to take back."


def test_an_illegal_key_is_explained_and_not_played() -> None:
    game = InteractiveGame(6)
    press(game, "w")
    assert game.message == "up: that is beyond the edge."
    assert game.actions == []
    press(game, "%")
    assert game.message == "'%' does nothing here: ? for help."


def test_a_new_game_has_the_next_seed() -> None:
    game = InteractiveGame(6)
    press(game, " ")
    press(game, "n")
    assert (game.seed, game.actions, game.total) == (7, [], 0.0)


def test_programs_have_keys() -> None:
    game = InteractiveGame(6)
    game.game.state.owned = [5, 11]
    game.game.state.player.energy = 5
    assert (game.program_action("1"), game.program_action("2")) == (10, 16)
    assert game.program_action("3") is None
    assert "1 wait 1e   2 siph+ 5c" in game.screen(50, colour=False)
    press(game, "1")
    assert game.actions == [10]


@pytest.mark.parametrize("rows", [12, 24, 50])
def test_a_screen_fits_the_terminal(rows: int) -> None:
    game = InteractiveGame(6)
    press(game, " ")
    lines = game.screen(rows, colour=False)
    assert len(lines) < rows
    assert lines[0] == "HackMatrix   seed 6   reward +4.14"
    assert all(len(line) < 80 for line in game.screen(rows, colour=False, helping=True))


def test_an_over_game_can_be_taken_back() -> None:
    game = InteractiveGame(3)
    while not game.over:
        legal = game.game.legal()
        game.act(legal[(7 * len(game.actions) + 3) % len(legal)])
    played = len(game.actions)
    press(game, "w")
    assert game.message.startswith("The game is over")
    assert len(game.actions) == played
    press(game, "u")
    assert not game.over


def test_a_pipe_plays_line_by_line() -> None:
    sink = io.StringIO()
    replay = play_in_pipe(0, io.StringIO("up\n\njump\nleft\n"), sink)
    assert replay.actions == (0, 2)
    assert "There is no action 'jump'." in sink.getvalue()
    assert sink.getvalue().endswith("The input has ended before the game.\n")


def test_a_real_terminal() -> None:
    """Keys as a person presses them, and the terminal as it was afterwards."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "operant", "play", "hackmatrix", "--seed", "6"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm", "LINES": "40", "COLUMNS": "100"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=environment)
    seen = _read_until(ours, b"q quit")
    for key, answer in (
        (b" ", b"+8 points"),
        (b"\x1b[A", b"beyond the edge"),
        (b"?", b"this help"),
        (b"u", b"Taken back"),
    ):
        os.write(ours, key)
        seen += _read_until(ours, answer)
    os.write(ours, b"q")
    seen += _read_until(ours, b"after 0 actions")
    assert process.wait(10) == 0
    assert seen.index(b"\x1b[?1049h") < seen.index(b"\x1b[?1049l")
    os.close(ours)
    os.close(theirs)


def _read_until(source: int, words: bytes) -> bytes:
    seen, deadline = b"", time.monotonic() + 20
    while words not in seen:
        assert select.select([source], [], [], deadline - time.monotonic())[0], f"{words!r} not in {seen!r}"
        seen += os.read(source, 65536)
    return seen
