"""A child process that answers JSON lines, with a deadline for every answer and its last words when it fails."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import subprocess
import tempfile
import time
import weakref
from pathlib import Path
from typing import IO, Any

from operant.errors import RunError, UsageError

VARIABLE = "HACKMATRIX_BINARY"
OURS = "operant hackmatrix serve"
GRACE_SECONDS = 2.0
SHOWN_CHARACTERS = 200


def command_of(binary: str | None) -> list[str]:
    """The words that start the game: `binary`, or what the environment variable says; a path or a command line."""
    text = binary or os.environ.get(VARIABLE)
    if not text:
        raise UsageError(
            f"no game was named: {VARIABLE} is not set",
            remedy=f"export {VARIABLE}='{OURS}'    (or the path of another)",
        )
    words = [text] if Path(text).exists() else shlex.split(text)
    return [*words, "--headless-cli"]


class Child:
    """The process, and one question to it at a time."""

    def __init__(self, command: list[str], timeout: float) -> None:
        self.command = command
        self.timeout = timeout
        self._noise = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._read = b""
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._noise, bufsize=0
            )
        except OSError as problem:
            self._noise.close()
            raise UsageError(
                f"{command[0]} cannot be started: {problem.strerror or problem}",
                remedy=f"export {VARIABLE}=PATH    (to a program that speaks the protocol of `{OURS}`)",
            ) from problem
        # Also when it is never closed, as in an environment that was refused.
        self._end = weakref.finalize(self, _end, self._process, self._noise)

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to a request; `RunError` if there is none in time, or one that is none."""
        line = json.dumps(request)
        self._write(line.encode() + b"\n")
        reply = self._line(line)
        try:
            answer = json.loads(reply)
        except ValueError as problem:
            raise self._failure(f"answered {line} with what is not JSON: {_short(reply)}") from problem
        if not isinstance(answer, dict):
            raise self._failure(f"answered {line} with what is no object: {_short(reply)}")
        if "error" in answer:
            raise self._failure(f"refused {line}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the input and wait a moment; a process that stays is killed. Harmless when repeated."""
        self._end()

    def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
        except OSError as problem:
            raise self._death() from problem

    def _line(self, request: str) -> bytes:
        """The next line of output, without its end."""
        deadline = time.monotonic() + self.timeout
        while b"\n" not in self._read:
            self._read += self._chunk(deadline, request)
        line, _, self._read = self._read.partition(b"\n")
        return line

    def _chunk(self, deadline: float, request: str) -> bytes:
        assert self._process.stdout is not None
        left = deadline - time.monotonic()
        ready, _, _ = select.select([self._process.stdout], [], [], max(left, 0))
        if not ready:
            raise self._failure(f"gave no answer to {request} within {self.timeout:g} s")
        data = os.read(self._process.stdout.fileno(), 1 << 16)
        if not data:
            raise self._death()
        return data

    def _death(self) -> RunError:
        try:
            status = f"ended with status {self._process.wait(GRACE_SECONDS)}"
        except subprocess.TimeoutExpired:
            status = "closed its output"
        return self._failure(status)

    def _failure(self, what: str) -> RunError:
        """The failure with the last line that the process wrote to its standard error."""
        self._noise.seek(0)
        lines = self._noise.read().decode(errors="replace").strip().splitlines()
        words = f"; it said: {lines[-1][:SHOWN_CHARACTERS]}" if lines else ""
        return RunError(
            f"the game {what}{words}", place=shlex.join(self.command), remedy=f"try by hand: {shlex.join(self.command)}"
        )


def _end(process: subprocess.Popen[bytes], noise: IO[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
    noise.close()


def _short(line: bytes) -> str:
    text = line.decode(errors="replace")
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]} ..."
