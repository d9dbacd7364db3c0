"""Jobs forked from a process that has loaded the engine already, so that each begins without seconds of imports.

The server imports and does nothing else: no thread runs in it, no device is opened and nothing random is drawn, so a
forked session computes what one in a process of its own computes. It reads requests as lines of JSON on its standard
input. When that ends the launcher is gone: the server asks its sessions to save and ends.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from operant.envs.cores import CORES_VARIABLE
from operant.errors import EXIT_FAILED, RunError
from operant.launch.budget import library_environment
from operant.launch.launcher import Resources, Ticket
from operant.launch.parent_watch import PARENT_VARIABLE
from operant.run.layout import shown

READY = "ready"


class ForkLauncher:
    """A launcher whose jobs are forked from one server of an engine, for sessions of so many `threads`.

    A server that was killed is started again by the next job; its jobs read as killed, and save by themselves.
    """

    def __init__(self, engine: str, threads: int, log: Path) -> None:
        self._argv = [sys.executable, "-m", "operant", "fork-server", engine]
        self._threads = threads
        self._log = log
        self._server: subprocess.Popen[bytes] | None = None
        self._ready = False
        self._unread = b""
        self._last = 0
        self._codes: dict[int, int | None] = {}
        self._asked: set[int] = set()

    def submit(self, argv: list[str], resources: Resources, name: str) -> Ticket:
        """Fork a job; `argv` is that of a session, of which the words after `operant` count."""
        self._read()
        self._start_server()
        resources.log.parent.mkdir(parents=True, exist_ok=True)
        self._last += 1
        self._codes[self._last] = None
        variables = {CORES_VARIABLE: str(resources.cores), **resources.environment}
        words = argv[argv.index("operant") + 1 :]
        self._send({"job": self._last, "words": words, "environment": variables, "log": str(resources.log.absolute())})
        return Ticket(name=name, ident=self._last, log=resources.log)

    def poll(self, ticket: Ticket) -> int | None:
        """The exit code; negative for the signal that killed it; None while it runs."""
        self._read()
        return self._codes[ticket.ident]

    def cancel(self, ticket: Ticket) -> None:
        """First SIGINT to the job alone, so that it saves; then SIGKILL to all of its processes."""
        if self.poll(ticket) is None:
            kill = ticket.ident in self._asked
            self._asked.add(ticket.ident)
            self._send({"job": ticket.ident, "signal": int(signal.SIGKILL if kill else signal.SIGINT)})

    def close(self) -> None:
        """Let the server end; sessions that it still has are asked to save."""
        if self._server is not None and self._server.stdin is not None and self._server.stdout is not None:
            self._server.stdin.close()
            self._server.stdout.close()
            self._server.wait()
            self._server = None

    def _start_server(self) -> None:
        if self._server is not None:
            return
        self._ready, self._unread = False, b""
        with self._log.open("ab") as log:
            self._server = subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **library_environment(self._threads), "PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )

    def _send(self, request: dict[str, Any]) -> None:
        assert self._server is not None
        assert self._server.stdin is not None
        try:
            self._server.stdin.write(json.dumps(request).encode() + b"\n")
            self._server.stdin.flush()
        except BrokenPipeError:
            self._server_ended()

    def _read(self) -> None:
        """Take in what the server has said, without waiting."""
        while self._server is not None and self._server.stdout is not None:
            readable, _, _ = select.select([self._server.stdout], [], [], 0)
            if not readable:
                return
            more = os.read(self._server.stdout.fileno(), 65536)
            if not more:
                self._server_ended()
                return
            *lines, self._unread = (self._unread + more).split(b"\n")
            for line in lines:
                self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        if READY in message:
            self._ready = True
        else:
            self._codes[message["job"]] = message["code"]

    def _server_ended(self) -> None:
        server, self._server = self._server, None
        assert server is not None
        code = server.wait()
        for job in [job for job, ended in self._codes.items() if ended is None]:
            self._codes[job] = -signal.SIGKILL
        if not self._ready and code > 0:
            lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [f"code {code}"]
            raise RunError(f"sessions cannot be started: {lines[-1]}", place=shown(self._log))


def serve(run_words: Callable[[list[str]], int]) -> None:
    """Fork a process for each request that comes on standard input, which carries out its words.

    Returns when standard input has ended.
    """
    server = _Server(run_words)
    server.say({READY: True})
    # What was imported stays where it is, so that the pages of memory stay shared with the forked processes.
    gc.collect()
    gc.freeze()
    server.listen()


class _Server:
    """The loop of the server: requests in, exit codes out."""

    def __init__(self, run_words: Callable[[list[str]], int]) -> None:
        self._run_words = run_words
        # What a library prints must not be taken for an answer.
        self._answers = os.dup(1)
        os.dup2(2, 1)
        self._jobs: dict[int, int] = {}
        self._waking, self._woken = os.pipe()
        os.set_blocking(self._woken, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)

    def say(self, message: dict[str, Any]) -> None:
        """Answer the launcher; one that is gone is noticed by the end of its requests."""
        with suppress(BrokenPipeError):
            os.write(self._answers, json.dumps(message).encode() + b"\n")

    def listen(self) -> None:
        """Carry out requests until they end, then ask what still runs to save."""
        unread = b""
        while True:
            readable, _, _ = select.select([0, self._waking], [], [])
            if self._waking in readable:
                os.read(self._waking, 4096)
            self._reap()
            if 0 not in readable:
                continue
            more = os.read(0, 65536)
            if not more:
                break  # the launcher is gone
            *lines, unread = (unread + more).split(b"\n")
            for line in lines:
                self._answer(json.loads(line))
        for pid in self._jobs.values():
            os.kill(pid, signal.SIGTERM)

    def _answer(self, request: dict[str, Any]) -> None:
        job = request["job"]
        if "signal" not in request:
            self._jobs[job] = self._fork(request)
        elif job in self._jobs and request["signal"] == signal.SIGKILL:
            os.killpg(self._jobs[job], signal.SIGKILL)
        elif job in self._jobs:
            os.kill(self._jobs[job], request["signal"])

    def _reap(self) -> None:
        for job, pid in list(self._jobs.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self._jobs[job]
                self.say({"job": job, "code": os.waitstatus_to_exitcode(status)})

    def _fork(self, request: dict[str, Any]) -> int:
        parent = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        code = EXIT_FAILED
        try:
            self._become_job(request, parent)
            code = self._run_words(request["words"])
            # Of the server itself nothing is registered to run at its exit; what is, the session registered.
            atexit._run_exitfuncs()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _become_job(self, request: dict[str, Any], parent: int) -> None:
        """In the forked process: a process session, an output and signals of its own."""
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for file in (self._answers, self._waking, self._woken):
            os.close(file)
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for file, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(file, target)
        os.environ.update(request["environment"] | {PARENT_VARIABLE: str(parent)})
