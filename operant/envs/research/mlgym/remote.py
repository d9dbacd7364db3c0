"""A program that is handed in runs in a sandbox of its own, and the evaluation in another calls its functions.

In place of the agent's module the evaluation imports a stub, which asks through its pipes. So nothing that the agent
wrote runs where the score is computed, and what it answers is read as JSON. Questions may be objects: they are
unpickled in the agent's sandbox only.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from operant.envs.research.player import GRACE, LINE_MOST, Unfit
from operant.envs.sandbox import Ran, Running

ASKS = b"\x1dasks "
CHUNK = 1 << 16
KEPT = 1 << 20
LAST_WORDS = 2_000

# The stub of a module, in the sandbox of the evaluation.
STUB = """
import json, os, pickle, sys

def __getattr__(name):
    if name not in {names!r}:
        raise AttributeError(name)
    def asked(*args, **kwargs):
        sys.stdout.flush()
        question = pickle.dumps(({module!r}, name, args, kwargs)).hex().encode()
        os.write(1, b"\\x1dasks " + question + b"\\n")
        line = os.read(0, 65536)
        while line[-1:] != b"\\n":
            more = os.read(0, 65536)
            if not more:
                raise EOFError("nobody answers")
            line += more
        is_tuple, value = json.loads(line)
        return tuple(value) if is_tuple else value
    return asked
"""

# What answers in the sandbox of the agent's program; numbers of numpy become Python's.
ANSWER = """
import os, pickle, sys
from importlib import import_module
from json import dumps

def plain(value):
    return value.tolist() if hasattr(value, "tolist") else str(value)

def serve():
    asked, said = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0), os.dup2(nowhere, 1)
    sys.path.insert(0, "")
    for line in asked:
        module, name, args, kwargs = pickle.loads(bytes.fromhex(line.decode()))
        value = getattr(import_module(module), name)(*args, **kwargs)
        os.write(said, dumps([isinstance(value, tuple), value], default=plain).encode() + b"\\n")

serve()
"""


def stubs(asked: Mapping[str, Sequence[str]]) -> dict[str, bytes]:
    """A stub for each program that is handed in, with the functions that are asked of it."""
    return {
        name: STUB.format(module=name.removesuffix(".py").replace("/", "."), names=tuple(names)).encode()
        for name, names in asked.items()
    }


class Relay:
    """Passes questions of an evaluation to a program, and answers back (final)."""

    def __init__(self, evaluation: Running, program: Running, seconds: float) -> None:
        self._evaluation, self._program = evaluation, program
        self._began, self._seconds = time.monotonic(), seconds
        self._printed, self._waiting = bytearray(), b""
        self._words: dict[int, bytes] = {evaluation.stderr: b"", program.stderr: b""}
        self._poll = select.poll()
        for stream in (evaluation.stdout, evaluation.stderr, program.stderr):
            self._poll.register(stream, select.POLLIN)

    def run(self) -> Ran:
        """What the evaluation printed and how it ended; `Unfit` where the program gives no answer."""
        while (chunk := self._read(self._evaluation.stdout)) is not None:
            if not chunk:
                return self._ended()
            *lines, self._waiting = (self._waiting + chunk).split(b"\n")
            for line in lines:
                if line.startswith(ASKS):
                    self._answer(line.removeprefix(ASKS))
                else:
                    self._printed = (self._printed + line + b"\n")[-KEPT:]
        self._evaluation.kill()
        return Ran(-9, bytes(self._printed), self._words[self._evaluation.stderr], self._seconds, "time")

    def _read(self, stream: int) -> bytes | None:
        """What a stream has next, b"" at its end, None when the time is over; meanwhile complaints are overheard."""
        while (left := self._began + self._seconds - time.monotonic()) > 0:
            for ready, _ in self._poll.poll(left * 1000):
                if ready == stream:
                    return os.read(stream, CHUNK)
                if ready in self._words:
                    self._overhear(ready)
        return None

    def _overhear(self, stream: int) -> None:
        chunk = os.read(stream, CHUNK)
        if not chunk:
            self._poll.unregister(stream)
        self._words[stream] = (self._words[stream] + chunk)[-LAST_WORDS:]

    def _answer(self, question: bytes) -> None:
        """Ask the program, and pass on the one line that it says."""
        said = self._program.stdout
        with suppress(BrokenPipeError):
            _write(self._program.stdin, question + b"\n")
        self._poll.unregister(self._evaluation.stdout)
        self._poll.register(said, select.POLLIN)
        line = b""
        while not line.endswith(b"\n"):
            chunk = self._read(said)
            if chunk is None:
                raise Unfit(f"no answer within {self._seconds:g} s")
            if not chunk:
                raise Unfit(f"the program ended before it answered: {self._last_words()}")
            line += chunk
            if len(line) > LINE_MOST:
                raise Unfit(f"an answer is longer than {LINE_MOST} bytes")
        if line.count(b"\n") != 1:
            raise Unfit("the program said more than its answer")
        self._poll.unregister(said)
        self._poll.register(self._evaluation.stdout, select.POLLIN)
        with suppress(BrokenPipeError):
            _write(self._evaluation.stdin, line)

    def _last_words(self) -> str:
        ended = self._program.wait(GRACE)
        words = self._rest(self._program.stderr).decode(errors="replace").strip()
        return f"too much {ended.killed}" if ended and ended.killed else words or "it is gone"

    def _ended(self) -> Ran:
        ended = self._evaluation.wait(max(self._began + self._seconds - time.monotonic(), GRACE))
        code, killed = (ended.code, ended.killed) if ended else (-9, "time")
        out = bytes(self._printed) + self._waiting
        return Ran(code, out, self._rest(self._evaluation.stderr), time.monotonic() - self._began, killed)

    def _rest(self, stream: int) -> bytes:
        """All that a program complained about, of which the end is kept."""
        os.set_blocking(stream, False)
        with suppress(BlockingIOError):
            while chunk := os.read(stream, CHUNK):
                self._words[stream] = (self._words[stream] + chunk)[-LAST_WORDS:]
        return self._words[stream]


def _write(stream: int, data: bytes) -> None:
    while data:
        data = data[os.write(stream, data) :]
