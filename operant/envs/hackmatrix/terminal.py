"""A terminal as a game wants it: single keys as they are pressed, its own screen, and all put back at the end."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager

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
