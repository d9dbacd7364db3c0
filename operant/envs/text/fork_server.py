"""The process that workers of a pool are forked from, as the pool sees it."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import recv_handle
from typing import Any

from operant.envs.text.verify_worker import FORK, Recipe, kill_group, serve_forks
from operant.errors import RunError

START_SECONDS = 120.0
CLOSE_SECONDS = 5.0


class ForkServer:
    """Forks and ends workers (final). Any thread may call. It starts when the first is wanted, and again if it dies.

    It is a program of its own and never a fork of this process, which may hold locks of torch and of its threads.
    """

    def __init__(self, recipes: Sequence[Recipe], seconds: float | None, rewards: Sequence[Mapping[str, Any]]) -> None:
        self._settings = (recipes, seconds, rewards)
        self._lock = threading.Lock()
        self._process: BaseProcess | None = None

    def fork(self) -> tuple[int, Connection]:
        """A new worker and the pipe to it; EOFError or OSError where it or the server died instead."""
        with self._lock:
            if self._process is None:
                self._start()
            try:
                self._pipe.send(FORK)
                pid: int = self._pipe.recv()
                pipe = Connection(recv_handle(self._pipe))
            except BaseException:
                self._drop()
                raise
        return pid, pipe

    def end(self, pid: int) -> None:
        """End a worker and all that it started."""
        with self._lock:
            try:
                if self._process is None:
                    raise EOFError
                self._pipe.send(pid)
            except (EOFError, OSError):
                self._drop()
                kill_group(pid)

    def close(self) -> None:
        """End the server, and the workers that are left with it."""
        with self._lock:
            if self._process is not None:
                self._pipe.close()
                self._process.join(CLOSE_SECONDS)
                self._drop()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve_forks, args=(theirs, *self._settings), daemon=True)
        self._process.start()
        theirs.close()
        try:
            if not self._pipe.poll(START_SECONDS):
                raise RunError(f"a verifier did not start within {START_SECONDS:g} s")
            if (refusal := self._pipe.recv()) is not None:
                raise RunError(f"a verifier cannot make its tasks: {refusal}")
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.join()
            self._pipe.close()
