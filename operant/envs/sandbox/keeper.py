"""The host's side of a sandbox that an agent serves: one socket, over which programs get their pipes."""

from __future__ import annotations

import array
import marshal
import os
import select
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from operant.envs.sandbox.base import CommandTooLong, SandboxDied
from operant.envs.sandbox.cgroup import TCP_SHARE, Group, make_group, read
from operant.envs.sandbox.limits import Cause, Limits, Ran
from operant.envs.sandbox.running import Running

OPEN_SECONDS = 10.0
KILL_SECONDS = 10.0
WORDS_SECONDS = 0.1
REQUEST_MOST = 1 << 17
DEFAULT_BUFFER = 212_992
CREDENTIALS = struct.Struct("iii")
CAUSES = ("", "memory", "processes", "files")
AGENT = Path(__file__).with_name("agent.py").read_text()
# In a shortage of memory the kernel takes a sandbox first. Set here, for in a sandbox /proc cannot be written.
YIELDING = ("sh", "-c", 'echo 1000 > /proc/self/oom_score_adj; exec "$@"', "sh")


class Keeper:
    """A started agent and the programs that it runs.

    What the agent says is read with care, as a few words and numbers, for it lives with the code of others.
    """

    def __init__(self, python: str, limits: Limits, wrapper: Sequence[str], **popen: Any) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._group: Group | None = None
        self._ended: dict[int, Ran] = {}
        self._started = 0
        try:
            self._group = make_group(limits)
            self._agent = self._popen([*wrapper, python], limits, theirs.fileno(), popen)
        except OSError as problem:
            self._control.close()
            self._drop_group()
            raise SandboxDied(f"the sandbox did not open: {problem}") from problem
        finally:
            theirs.close()
        self._first = self._await_ready()

    def _popen(self, line: list[str], limits: Limits, control: int, popen: dict[str, Any]) -> subprocess.Popen[bytes]:
        """Start the agent, with its limits and its group in its arguments."""
        fds = self._group.fds if self._group else (-1, -1)
        numbers = (limits.memory, limits.cpu_seconds, limits.file_size, limits.open_files, limits.processes)
        numbers += (limits.files, limits.address_space, *((0, 0) if limits.network else buffer_bytes()))
        numbers += (limits.memory // TCP_SHARE, *fds)
        try:
            agent = subprocess.Popen(
                [*YIELDING, *line, "-I", "-S", "-c", AGENT, *map(str, numbers)],
                stdin=control,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
                **{**popen, "pass_fds": (*popen.get("pass_fds", ()), *(fd for fd in fds if fd >= 0))},
            )
            return cast("subprocess.Popen[bytes]", agent)
        finally:
            if self._group:
                self._group.close_fds()

    def _drop_group(self) -> None:
        group, self._group = self._group, None
        if group is not None:
            group.close()

    def _await_ready(self) -> int:
        """Wait for the agent's first word, which the kernel signs with its process number as it is out here."""
        ended = os.pidfd_open(self._agent.pid)
        try:
            ready, _, _ = select.select([self._control, ended], [], [], OPEN_SECONDS)
        finally:
            os.close(ended)
        word, signed = b"", []
        if self._control in ready:
            with suppress(OSError):
                word, signed, _, _ = self._control.recvmsg(16, socket.CMSG_SPACE(CREDENTIALS.size))
        if word == b"ready":
            return CREDENTIALS.unpack(signed[0][2])[0]
        self._first = self._agent.pid
        said = self._last_words()
        self.kill()
        raise SandboxDied(f"the sandbox did not open: {said or 'no answer'}")

    def _last_words(self) -> str:
        """What the agent's wrapper complained of, as far as it is there: one that is stuck would never end its line."""
        assert self._agent.stderr
        words = self._agent.stderr.fileno()
        heard = os.read(words, 4096) if select.select([words], [], [], WORDS_SECONDS)[0] else b""
        return heard.decode(errors="replace").strip()

    @property
    def alive(self) -> bool:
        """Whether the agent runs. Its end is only looked at: until `kill` nobody else gets its process number."""
        if self._agent.returncode is not None:
            return False
        return os.waitid(os.P_PID, self._agent.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def start(self, argv: Sequence[str], environment: Mapping[str, str], alone: bool) -> Running:
        """Start a program with fresh pipes."""
        self._started += 1
        request = marshal.dumps(("start", self._started, list(argv), dict(environment), alone))
        if len(request) > REQUEST_MOST:
            raise CommandTooLong
        (child_in, stdin), (stdout, child_out), (stderr, child_err) = os.pipe(), os.pipe(), os.pipe()
        try:
            self._send(request, (child_in, child_out, child_err))
        except SandboxDied:
            for fd in (stdin, stdout, stderr):
                os.close(fd)
            raise
        finally:
            for fd in (child_in, child_out, child_err):
                os.close(fd)
        return KeptProgram(self, self._started, (stdin, stdout, stderr))

    def _send(self, request: bytes, fds: Sequence[int] = ()) -> None:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self._control.sendmsg([request], ancillary)
        except OSError as gone:
            raise SandboxDied("the sandbox is gone") from gone

    def end(self, number: int) -> None:
        """Kill one program; if the sandbox is gone, so is the program."""
        with suppress(SandboxDied):
            self._send(marshal.dumps(("kill", number)))

    def wait(self, number: int, seconds: float) -> Ran | None:
        """How a program ended, if it does within so many seconds."""
        deadline = time.monotonic() + seconds
        while number not in self._ended:
            left = max(deadline - time.monotonic(), 0)
            if not select.select([self._control], [], [], left)[0]:
                return None
            self._hear()
        return self._ended.pop(number)

    def _hear(self) -> None:
        try:
            word = self._control.recv(256)
        except OSError:
            word = b""
        if not word:
            self.kill()
            raise SandboxDied("the sandbox ended while a program ran in it")
        try:
            number, code, cause = word.decode("ascii", errors="replace").split(" ")
            self._ended[int(number)] = Ran(int(code), b"", b"", 0.0, cast(Cause, cause if cause in CAUSES else ""))
        except ValueError:
            self.kill()
            raise SandboxDied("the sandbox says what it cannot mean") from None

    def kill(self) -> None:
        """End the agent, and with it everything in the sandbox, and return when all of it is dead.

        The kernel ends a namespace before it tells of the end of its first process, so that one is killed, and
        not bubblewrap, which waits for it. Where bubblewrap itself was killed while it began, its child waits for
        ever in the group of a dead leader, so that is ended too.
        """
        self._control.close()
        if self._agent.returncode is None:
            self._end()
        assert self._agent.stderr
        self._agent.stderr.close()
        self._drop_group()

    def _end(self) -> None:
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self._first, signal.SIGKILL)
        else:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._agent.pid, signal.SIGKILL)
        try:
            self._agent.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            self._agent.kill()
            self._agent.wait()

    def leave(self, seconds: float) -> None:
        """Let the agent end what it started, then end it: for agents whose death would free their children."""
        self._control.close()
        with suppress(subprocess.TimeoutExpired):
            self._agent.wait(seconds)
        self.kill()


class KeptProgram(Running):
    """A program under a keeper."""

    def __init__(self, keeper: Keeper, number: int, pipes: tuple[int, int, int]) -> None:
        self._keeper, self._number = keeper, number
        self.stdin, self.stdout, self.stderr = pipes

    def wait(self, seconds: float) -> Ran | None:
        return self._keeper.wait(self._number, seconds)

    def kill(self) -> None:
        self._keeper.end(self._number)


def buffer_bytes() -> tuple[int, int]:
    """The most bytes that the queues of a socket can hold on this machine, and how many more if it speaks TCP."""
    plain = 2 * max(int(read(f"/proc/sys/net/core/{way}mem_max") or DEFAULT_BUFFER) for way in "rw")
    tcp = sum(int((read(f"/proc/sys/net/ipv4/tcp_{way}mem").split() or [0])[-1]) for way in "rw")
    return plain, tcp
