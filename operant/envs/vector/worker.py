"""One worker of `operant.envs.vector.subproc`, as a process: `python -m operant.envs.vector.worker SOCKET MEMORY`.

It steps its environments on request and ends when its socket closes. Signals are the parent's to
answer: it may need these environments until it has saved.
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

from operant.envs.vector.fp_mode import adopt_arithmetic_mode
from operant.envs.vector.local import make_local
from operant.envs.vector.subproc import DONE, FAILED, PREFETCH, RESET, STEP, Layout, Shared, Slice
from operant.spec.settings.sections import EnvSpec


def serve(line: socket.socket, memory: int) -> None:
    """Build the environments, then step and reset them until the socket closes."""
    task = _first_line(line)
    try:
        mine = _build(task, memory)
    except Exception as problem:
        _report_failure(line, 0, problem)
        return
    line.sendall(DONE)
    work = {STEP: mine.step, RESET: mine.reset, PREFETCH: mine.prefetch}
    while word := line.recv(1):
        try:
            work[word]()
        except Exception as problem:
            _report_failure(line, mine.env.at, problem)
            return
        line.sendall(DONE)


def _first_line(line: socket.socket) -> dict[str, Any]:
    with line.makefile("rb", buffering=0) as file:
        line_read = file.readline()
    if not line_read:
        raise ConnectionError("the parent is gone")
    return json.loads(line_read)


def _build(task: dict[str, Any], memory: int) -> Slice:
    adopt_arithmetic_mode(bytes.fromhex(task["mode"]))
    layout = Layout(**task["layout"])
    shared = Shared.within(layout, mmap.mmap(memory, layout.size())).slice(task["first"], task["end"])
    spec = EnvSpec.model_validate(task["spec"])
    return Slice(make_local(spec, task["end"] - task["first"]), shared)


def _report_failure(line: socket.socket, index: int, problem: Exception) -> None:
    failure = {
        "index": index,
        "cause": f"{type(problem).__name__}: {problem}",
        "trace": "".join(traceback.format_exception(problem)),
    }
    line.sendall(FAILED + json.dumps(failure).encode() + b"\n")


def main() -> None:
    """Serve until the parent is gone, however it went."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    line, memory = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    with suppress(ConnectionError):
        serve(line, memory)
    # The parent is gone or has finished with these environments: nothing is left to release in order.
    os._exit(0)


if __name__ == "__main__":
    main()
