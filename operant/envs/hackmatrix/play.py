"""A person plays: with single keys in a terminal, or with one action a line in a pipe."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TextIO

from operant.envs.hackmatrix.replay import Replay
from operant.envs.hackmatrix.sitting import KEYS, Sitting
from operant.envs.hackmatrix.terminal import raw_terminal, read_key, show
from operant.envs.hackmatrix.text import TextGame, find_action

_QUITS = ("q", "", "\x04", "\x1b")
SEEDS = 1_000_000


def play_in_terminal(seed: int) -> Replay:
    """Let a person play until they quit; the last game as they left it."""
    sitting, helping = Sitting(seed), False
    colour = not os.environ.get("NO_COLOR")
    with raw_terminal():
        while True:
            show(sitting.screen(shutil.get_terminal_size().lines, colour, helping))
            key = _next_key()
            if key in _QUITS:
                return Replay(sitting.seed, tuple(sitting.actions))
            helping = key == "?" and not helping
            if key != "?":
                press(sitting, key)


def _next_key() -> str:
    """The next key; Ctrl-C is one that quits."""
    try:
        return read_key()
    except KeyboardInterrupt:
        return ""


def press(sitting: Sitting, key: str) -> None:
    """What a key does to the game."""
    action = KEYS.get(key, sitting.program_action(key))
    if action is not None:
        sitting.act(action)
    elif key == "u":
        sitting.undo()
    elif key == "n":
        sitting.begin((sitting.seed + 1) % SEEDS)
    else:
        sitting.message = f"{key!r} does nothing here: ? for help."


def play_in_pipe(seed: int, source: TextIO, sink: TextIO) -> Replay:
    """Play the actions of `source`, one a line, and write what happens; the game as far as they went."""
    game, actions = TextGame(seed), []
    print(game.introduction(), f"seed {seed}", game.view(), sep="\n\n", file=sink, flush=True)
    for line in filter(str.strip, source):
        turn = game.act(line)
        print(f"> {line.strip()}", turn.text, sep="\n", file=sink, flush=True)
        if turn.played:
            actions.append(find_action(line))
        if turn.done:
            return Replay(seed, tuple(actions))
        if turn.played:
            print(game.view(), file=sink, flush=True)
    print("The input has ended before the game.", file=sink, flush=True)
    return Replay(seed, tuple(actions))


def is_interactive() -> bool:
    """Whether a person sits before both ends."""
    return sys.stdin.isatty() and sys.stdout.isatty()
