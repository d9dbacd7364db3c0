"""sympy at arm's length: a process that compares formulas, is killed when it takes too long, and is started again.

One process serves all threads of this one. It costs a second or two to start and then milliseconds a question.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import selectors
import subprocess
import sys
import threading
from pathlib import Path

from operant.errors import RunError

START_SECONDS = 240.0
CPU_SECONDS = 3.0
WALL_SECONDS = 30.0  # of one question, for a process that waits or cannot be timed
MEMORY = 2 << 30
LONGEST = 400  # characters of a formula
SOURCE = Path(__file__).with_name("algebra_worker.py").read_text()


class Undecided(Exception):
    """Nobody can say whether two formulas are the same: that took more than its time or memory, or sympy failed."""


class Algebra:
    """The process, when there is one (final). Any thread may ask; questions are answered one after the other.

    A question may take `seconds` of the processor, counted by the kernel, so that a busy machine makes no formula
    harder, and `memory` bytes of address space. `undecided` counts the questions that this was too little for.
    """

    def __init__(self, seconds: float = CPU_SECONDS, memory: int = MEMORY) -> None:
        self.seconds, self.memory = seconds, memory
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False
        self.undecided = 0

    @property
    def installed(self) -> bool:
        """Whether there is a package to ask."""
        return importlib.util.find_spec("math_verify") is not None

    def start(self) -> None:
        """Have the process ready, so that the first question does not wait for it; nothing without the package."""
        if self.installed:
            with self._lock:
                self._await_ready()

    def same(self, one: str, other: str) -> bool | None:
        """Whether two formulas are the same; None where one of them is none. `Undecided` where that cannot be told."""
        if max(len(one), len(other)) > LONGEST:
            return None
        with self._lock:
            process = self._await_ready()
            try:
                answer = self._asked(process, json.dumps([one, other]).encode() + b"\n")
            except BaseException:
                self._end()
                raise
            if not answer:
                self._end()
        if not answer or (said := json.loads(answer)) == "undecided":
            self.undecided += 1
            raise Undecided(f"not decided by sympy within {self.seconds:g} s and {self.memory >> 20} MB")
        return said

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def forget(self) -> None:
        """After a fork: the process is the parent's."""
        self.__init__(self.seconds, self.memory)

    def _launch(self) -> subprocess.Popen[bytes]:
        # -P: no folder of the user's stands before the packages. A new program, never a fork: torch holds locks.
        argv = [sys.executable, "-P", "-c", SOURCE, str(self.seconds), str(self.memory)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self._ready = False
        return self._process

    def _await_ready(self) -> subprocess.Popen[bytes]:
        process = self._process
        if process is None or process.poll() is not None:
            self._end()
            process = self._launch()
        if not self._ready and _line(process, START_SECONDS) != b"ready":
            self._end()
            raise RunError("the process that compares formulas did not start", remedy="python -c 'import math_verify'")
        self._ready = True
        return process

    def _asked(self, process: subprocess.Popen[bytes], question: bytes) -> bytes:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(question)
            process.stdin.flush()
            return _line(process, WALL_SECONDS)
        return b""

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()


def _line(process: subprocess.Popen[bytes], seconds: float) -> bytes:
    """The next line that a process prints, whole or not at all; nothing where it is late or has ended."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        line = process.stdout.readline() if selector.select(seconds) else b""
    return line.strip() if line.endswith(b"\n") else b""


ALGEBRA = Algebra()
os.register_at_fork(after_in_child=ALGEBRA.forget)
