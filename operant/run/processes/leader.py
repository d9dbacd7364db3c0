"""Process 0 of a session in several processes: it waits for the others, tells them what to do, and notices who dies."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from operant.errors import EXIT_FAILED, OperantError, RunError, UsageError
from operant.run.processes.connection import Connection, Message
from operant.run.processes.distributed_config import DistributedConfig
from operant.run.processes.member import disagreement, introduction
from operant.run.run import Run

HELLO_SECONDS = 10.0
ACCEPT_SECONDS = 0.5
MOMENT_SECONDS = 5.0
STUCK_SECONDS = 20.0
SAME = "start every process with the same spec, settings and installation"
GOES_ON = "`operant resume` goes on from the last checkpoint, with all processes started again"


class Leader:
    """The other processes, all of them here and in agreement.

    Where one dies, the computation that it shared fails; `failure` then says who it was. A computation that hangs
    instead is ended after some seconds, with the whole process, once `on_stuck` has recorded why.
    """

    def __init__(self, world: DistributedConfig, run: Run, engine: str, on_stuck: Callable[[str], object]) -> None:
        self._config = world
        self._threads, self._engine = run.threads, engine
        self._on_stuck = on_stuck
        self._died: RunError | None = None
        self._dying = threading.Lock()
        self._ended = threading.Event()
        self._introduction = introduction(world, run.spec)
        self._connections: dict[int, Connection] = {}
        try:
            self._admit()
        except OperantError as error:
            self._ended.set()
            self.tell("refuse", cause=error.cause)
            self._close()
            raise
        self._welcome()

    def tell(self, order: str, files: Mapping[str, Path] | None = None, **arguments: Any) -> None:
        """Give all other processes an order; files go with it."""
        for connection in self._connections.values():
            connection.send({"order": order, **arguments}, files)

    def dismiss(self, code: int) -> None:
        """There is nothing more to do; the others end with this exit code, and before this process."""
        self._ended.set()
        self.tell("end", code=code)
        for connection in self._connections.values():
            connection.await_end(MOMENT_SECONDS)
        self._close()

    def fail(self, cause: str) -> None:
        """Process 0 gives up; the others end with an error that says so."""
        self._ended.set()
        self.tell("fail", cause=cause)
        self._close()

    def failure(self) -> RunError | None:
        """The process that died and of what; None if all live on for a moment."""
        deadline = time.monotonic() + MOMENT_SECONDS
        while self._died is None and time.monotonic() < deadline:
            time.sleep(0.05)
        self._ended.set()
        return self._died

    def _close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _admit(self) -> None:
        world, arrived = self._config, self._connections
        deadline = time.monotonic() + world.initialization_timeout
        with _listening(world) as server:
            server.settimeout(ACCEPT_SECONDS)
            while len(arrived) < world.num_processes - 1:
                with suppress(TimeoutError):
                    self._take(Connection(server.accept()[0]))
                if self._died is not None:
                    raise self._died
                if time.monotonic() > deadline:
                    raise self._absent()

    def _take(self, connection: Connection) -> None:
        """One more; what is no process of ours is not listened to."""
        try:
            hello = connection.read_now(HELLO_SECONDS)
            number, where = int(hello["process_id"]), f"{hello['host']} (pid {hello['pid']})"
            problem = disagreement(self._introduction, hello)
        except (OSError, ValueError, KeyError, TypeError):
            connection.close()
            return
        if problem is None and number in self._connections:
            problem = f"two processes say that they are process {number}: {self._connections[number].peer} and {where}"
        if problem is not None:
            connection.send({"order": "refuse", "cause": problem})
            connection.close()
            raise UsageError(problem, remedy=SAME)
        connection.peer = where
        self._connections[number] = connection
        connection.watch(partial(self._lost, number), partial(self._hear, number))

    def _absent(self) -> RunError:
        world = self._config
        absent = [number for number in range(1, world.num_processes) if number not in self._connections]
        named = f"process{'es' if len(absent) > 1 else ''} {', '.join(map(str, absent))}"
        return RunError(
            f"{named} of 0 to {world.num_processes - 1} did not come to {world.address}"
            f" within {world.initialization_timeout:g} s",
            remedy="start all of them, each with its --process-id; --initialization-timeout waits longer",
        )

    def _welcome(self) -> None:
        """Each is told which process of its machine it is, for the GPU that it takes."""
        hosts = {0: self._introduction["host"]}
        for number, connection in sorted(self._connections.items()):
            hosts[number] = connection.peer.partition(" ")[0]
            local = sum(host == hosts[number] for host in hosts.values()) - 1
            connection.send({"order": "welcome", "local_id": local, "engine": self._engine, "threads": self._threads})

    def _hear(self, number: int, message: Message) -> bool:
        """A process that fails says of what before it ends."""
        self._lost(number, str(message.get("failed", "it ended")))
        return True

    def _lost(self, number: int, cause: str) -> None:
        with self._dying:
            if self._died is not None or self._ended.is_set():
                return
            host = self._connections[number].peer
            self._died = RunError(
                f"process {number} of 0 to {self._config.num_processes - 1} on {host} died: {cause}", remedy=GOES_ON
            )
        self.tell("fail", cause=self._died.cause)
        if not self._ended.wait(STUCK_SECONDS):
            self._on_stuck(self._died.cause)
            print(self._died, file=sys.stderr, flush=True)
            os._exit(EXIT_FAILED)


def _listening(world: DistributedConfig) -> socket.socket:
    """A server at the coordinator's port, on all of this machine's addresses unless the address is its own."""
    try:
        family = socket.AF_INET6 if ":" in world.host else socket.AF_INET
        server = socket.socket(family, socket.SOCK_STREAM)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((world.host if world.is_local else "", world.port))
        server.listen(world.num_processes)
    except OSError as error:
        raise UsageError(
            f"process 0 cannot listen at {world.address}: {error.strerror or error}",
            remedy="--coordinator-address HOST:PORT with a port that is free on the machine of process 0",
        ) from None
    return server


def free_port() -> int:
    """A port that nothing listens at."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def cause_of(error: BaseException) -> str:
    """An error in one line."""
    text = error.cause if isinstance(error, OperantError) else f"{type(error).__name__}: {error}"
    return text.strip().partition("\n")[0][:500]
