"""A person plays: with single keys in a terminal, or with one action a line in a pipe."""

from __future__ import annotations

import os
import select
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from operant.envs.hackmatrix.faces.interactive import KEYS, InteractiveGame
from operant.envs.hackmatrix.faces.text import TextGame, find_action
from operant.envs.hackmatrix.viewer.replay import Replay
from operant.errors import UsageError

_OPEN = "\x1b[?1049h\x1b[?25l\x1b[?7l"  # another screen, no cursor, long lines cut off
_CLOSE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_ESCAPE_SECONDS = 0.05  # within which the rest of an arrow key follows its first byte


@contextmanager
def raw_terminal() -> Iterator[None]:
    """Keys come one by one and unseen, on a screen of their own; the terminal is put back whatever happens."""
    try:
        import termios
        import tty
    except ModuleNotFoundError as missing:
        raise UsageError(
            "the terminal of this system gives no single keys", remedy="play in a pipe, with one action a line"
        ) from missing
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        sys.stdout.write(_OPEN)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        sys.stdout.write(_CLOSE)
        sys.stdout.flush()


def read_key() -> str:
    """The next key: a character, an arrow as its escape sequence, or nothing when the input has ended."""
    source = sys.stdin.fileno()
    key = os.read(source, 1)
    while key.startswith(b"\x1b") and len(key) < 3 and select.select([source], [], [], _ESCAPE_SECONDS)[0]:
        key += os.read(source, 1)
    return key.decode("latin-1").replace("\x1bO", "\x1b[")


def show(lines: list[str]) -> None:
    """Draw the lines over the last ones, without a flicker."""
    body = "".join(f"{line}\x1b[K\r\n" for line in lines)
    sys.stdout.write(f"\x1b[H{body}\x1b[J")
    sys.stdout.flush()


_QUITS = ("q", "", "\x04", "\x1b")
SEEDS = 1_000_000


def play_in_terminal(seed: int) -> Replay:
    """Let a person play until they quit; the last game as they left it."""
    game, helping = InteractiveGame(seed), False
    colour = not os.environ.get("NO_COLOR")
    with raw_terminal():
        while True:
            show(game.screen(shutil.get_terminal_size().lines, colour, helping))
            key = _next_key()
            if key in _QUITS:
                return Replay(game.seed, tuple(game.actions))
            helping = key == "?" and not helping
            if key != "?":
                press(game, key)


def _next_key() -> str:
    """The next key; Ctrl-C is one that quits."""
    try:
        return read_key()
    except KeyboardInterrupt:
        return ""


def press(game: InteractiveGame, key: str) -> None:
    """What a key does to the game."""
    action = KEYS.get(key, game.program_action(key))
    if action is not None:
        game.act(action)
    elif key == "u":
        game.undo()
    elif key == "n":
        game.begin((game.seed + 1) % SEEDS)
    else:
        game.message = f"{key!r} does nothing here: ? for help."


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
    """Whether standard input and output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()
