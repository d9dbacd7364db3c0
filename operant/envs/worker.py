"""One worker of `operant.envs.workers`, as a process: `python -m operant.envs.worker SOCKET MEMORY`.

It plays its worlds when told to and ends when its socket closes. Signals are the parent's to
answer: it may need these worlds until it has saved.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import socket
import sys
import traceback
from contextlib import suppress
from typing import Any

from operant.envs.arithmetic_mode import adopt_arithmetic_mode
from operant.envs.gym import make_env
from operant.envs.workers import DONE, FAILED, RESTART, STEP, Layout, Shared, Slice
from operant.envs.worlds import SerialWorlds
from operant.spec.settings.sections import EnvSpec


def serve(line: socket.socket, memory: int) -> None:
    """Build the worlds, then step and restart them until nobody asks any more."""
    task = _first_line(line)
    try:
        mine = _build(task, memory)
    except Exception as problem:
        _tell_failure(line, 0, problem)
        return
    line.sendall(DONE)
    work = {STEP: mine.step, RESTART: mine.restart}
    while word := line.recv(1):
        try:
            work[word]()
        except Exception as problem:
            _tell_failure(line, mine.worlds.at, problem)
            return
        line.sendall(DONE)


def _first_line(line: socket.socket) -> dict[str, Any]:
    with line.makefile("rb", buffering=0) as file:
        told = file.readline()
    if not told:
        raise ConnectionError("the parent is gone")
    return json.loads(told)


def _build(task: dict[str, Any], memory: int) -> Slice:
    adopt_arithmetic_mode(bytes.fromhex(task["mode"]))
    layout = Layout(**task["layout"])
    shared = Shared.within(layout, mmap.mmap(memory, layout.size())).slice(task["first"], task["end"])
    spec = EnvSpec.model_validate(task["spec"])
    return Slice(SerialWorlds([make_env(spec) for _ in range(task["first"], task["end"])]), shared)


def _tell_failure(line: socket.socket, world: int, problem: Exception) -> None:
    told = {
        "world": world,
        "cause": f"{type(problem).__name__}: {problem}",
        "trace": "".join(traceback.format_exception(problem)),
    }
    line.sendall(FAILED + json.dumps(told).encode() + b"\n")


def main() -> None:
    """Serve until the parent is gone, however it went."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    line, memory = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    with suppress(ConnectionError):
        serve(line, memory)
    # The parent is gone or has finished with these worlds: nothing is left to release in order.
    os._exit(0)


if __name__ == "__main__":
    main()
