"""A process other than 0: it comes to the leader, does what that says, and writes nothing."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from operant.errors import EXIT_FAILED, EXIT_USAGE, OperantError, RunError
from operant.run.processes.connection import Connection, Message
from operant.run.processes.distributed_config import DistributedConfig
from operant.run.processes.leader import GOES_ON, SAME, cause_of
from operant.run.processes.member import introduction

RETRY_SECONDS = 0.2
WORD_SECONDS = 3.0


class Follower:
    """The connection to the leader. The process ends when the leader is gone, or says that another one is.

    Of the processes on its machine it is number `local_id`; it computes by `engine` with `threads` threads.
    """

    def __init__(self, world: DistributedConfig, spec: Mapping[str, Any] | None) -> None:
        self._config = world
        self._folders: list[str] = []
        hello = introduction(world, spec)  # before the leader listens for it
        self._connection = _connected(world)
        self._connection.send(hello)
        self._connection.watch(self._lost, self._hear)
        welcome = self._connection.receive()
        self.local_id, self.engine, self.threads = (welcome[name] for name in ("local_id", "engine", "threads"))

    def next_order(self) -> Message:
        """The next order; its `order` is "end" where there is nothing more to do."""
        message = self._connection.receive()
        if "folder" in message:
            self._folders.append(message["folder"])
        return message

    def close(self) -> None:
        """Leave, and remove what was sent."""
        self._connection.close()
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)

    def report(self, error: BaseException) -> None:
        """Say why this process ends, unless it is because another one has: then the leader says so in a moment."""
        time.sleep(WORD_SECONDS)
        self._connection.send({"failed": cause_of(error)})

    def _hear(self, message: Message) -> bool:
        """Act at once on the news that the session is over: the main thread may wait for a process that is gone."""
        if message.get("order") == "refuse":
            self._end(f"process 0 refused: {message['cause']}", EXIT_USAGE, SAME)
        if message.get("order") == "fail":
            self._end(str(message["cause"]), EXIT_FAILED, GOES_ON)
        return False

    def _lost(self, cause: str) -> None:
        others = self._config.num_processes - 1
        self._end(f"process 0 of 0 to {others} at {self._config.address} died: {cause}", EXIT_FAILED, GOES_ON)

    def _end(self, cause: str, code: int, remedy: str) -> NoReturn:
        print(f"{cause}\n  try: {remedy}", file=sys.stderr, flush=True)
        self.close()
        os._exit(code)


def follow(
    world: DistributedConfig, spec: Mapping[str, Any] | None, member: Callable[[Follower], Callable[[Message], object]]
) -> int:
    """The life of a follower: what `member` returns obeys every order until there is none; returns the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a stop is the leader's to answer, which saves first
    follower = Follower(world, spec)
    try:
        obey = member(follower)
        order: Message = {"order": ""}
        while order["order"] != "end":
            order = follower.next_order()
            obey(order)
    except Exception as error:
        follower.report(error)
        if isinstance(error, OperantError):
            raise
        traceback.print_exc()
        raise RunError(f"process {world.process_id} failed: {cause_of(error)}", remedy=GOES_ON) from error
    finally:
        follower.close()
    return int(order["code"])


def _connected(world: DistributedConfig) -> Connection:
    deadline = time.monotonic() + world.initialization_timeout
    while True:
        try:
            return Connection(socket.create_connection((world.host, world.port), timeout=RETRY_SECONDS * 10))
        except OSError as error:
            if time.monotonic() > deadline:
                raise RunError(
                    f"process 0 did not answer process {world.process_id} at {world.address}"
                    f" within {world.initialization_timeout:g} s: {error}",
                    remedy="start process 0, on the machine that --coordinator-address names",
                ) from None
            time.sleep(RETRY_SECONDS)
