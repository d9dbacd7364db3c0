"""A program of others that answers questions through a pipe, from a fresh sandbox.

What it says is data of unknown truth: one line of JSON for each question, read with a limit on its time and its
length. A program that breaks off, is late or says no JSON is `Unfit`, and that is its own fault.
"""

from __future__ import annotations

import json
import os
import selectors
import time
from contextlib import suppress
from typing import Any, NoReturn

from operant.envs.sandbox import Running
from operant.errors import OperantError

LINE_MOST = 1 << 20
CHUNK = 1 << 16
KEPT_WORDS = 2_000  # bytes of what the program printed last
GRACE = 1.0

# Put before every program. The pipes are moved away at once, so that no print of the graded code spoils an answer.
PRELUDE = """
def _private_pipes():
    import os
    pipes = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0), os.dup2(nowhere, 1)
    return pipes

def answer(function, pipes=_private_pipes()):
    import json
    asked, said = pipes
    for line in asked:
        said.write(json.dumps(function(json.loads(line))) + "\\n")
        said.flush()

"""


class Unfit(OperantError):
    """The artefact is missing, or cannot be scored; the message goes to the agent."""

    kind = "unfit"


class Player:
    """The host's end of such a program. `seconds` are for all its answers together."""

    def __init__(self, running: Running, seconds: float) -> None:
        self._running = running
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._line = bytearray()
        self._words = bytearray()
        os.set_blocking(running.stdin, False)

    def ask(self, value: Any) -> Any:
        """The program's answer to a question; both are plain JSON values."""
        self._send(json.dumps(value).encode() + b"\n")
        return _value_of(self._receive())

    def _send(self, data: bytes) -> None:
        waiting = memoryview(data)
        with selectors.DefaultSelector() as selector:
            selector.register(self._running.stdin, selectors.EVENT_WRITE)
            selector.register(self._running.stderr, selectors.EVENT_READ)
            while waiting:
                for fd in self._ready(selector):
                    if fd == self._running.stderr:
                        self._overhear(selector)
                        continue
                    try:
                        waiting = waiting[os.write(fd, waiting[:CHUNK]) :]
                    except BrokenPipeError:
                        self._ended()

    def _receive(self) -> bytes:
        with selectors.DefaultSelector() as selector:
            for fd in (self._running.stdout, self._running.stderr):
                selector.register(fd, selectors.EVENT_READ)
            while b"\n" not in self._line:
                if len(self._line) > LINE_MOST:
                    raise Unfit(f"an answer is longer than {LINE_MOST} bytes")
                for fd in self._ready(selector):
                    if fd == self._running.stderr:
                        self._overhear(selector)
                    elif chunk := os.read(fd, CHUNK):
                        self._line += chunk
                    else:
                        self._ended()
        line, _, self._line = self._line.partition(b"\n")
        return bytes(line)

    def _ready(self, selector: selectors.BaseSelector) -> list[int]:
        left = self._deadline - time.monotonic()
        found = [key.fd for key, _ in selector.select(max(left, 0))]
        if not found or left <= 0:
            raise Unfit(f"no answer within {self._seconds:g} s")
        return found

    def _overhear(self, selector: selectors.BaseSelector) -> None:
        """Keep the last of what the program complains about, so that it never waits for a reader."""
        chunk = os.read(self._running.stderr, CHUNK)
        if not chunk:
            selector.unregister(self._running.stderr)
        self._words = (self._words + chunk)[-KEPT_WORDS:]

    def _ended(self) -> NoReturn:
        ended = self._running.wait(GRACE)
        os.set_blocking(self._running.stderr, False)
        with suppress(BlockingIOError):
            while chunk := os.read(self._running.stderr, CHUNK):
                self._words = (self._words + chunk)[-KEPT_WORDS:]
        why = f"too much {ended.killed}" if ended and ended.killed else self._words.decode(errors="replace").strip()
        code = f"exit {ended.code}" if ended else "it is gone"
        raise Unfit(f"the program ended before it answered: {why or code}")


def _value_of(line: bytes) -> Any:
    try:
        return json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as problem:
        shown = line[:80].decode(errors="replace")
        raise Unfit(f"an answer is no JSON: {shown!r}") from problem


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")
