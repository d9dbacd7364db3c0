"""The first process of a sandbox: it starts programs when asked, watches what they use and buries the dead.

It runs inside, alone, from its source text, so it imports only what loads at once: with `socket`, `signal` and
`ctypes` a sandbox would take twice as long to open. Requests come with three open files over the socket that is
its standard input, and when that socket closes it ends, and every process with it. As process 1 of its namespace
it cannot be killed from inside, and being undumpable it cannot be traced.
"""

from __future__ import annotations

import _ctypes
import _socket
import marshal
import os
import resource
import select
import sys
from array import array

SIGKILL = 9
TICK_MILLISECONDS = 50
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
MSG_CMSG_CLOEXEC = 0x40000000
FOLDER_PREFIX = "operant-unsafe-"


def guard() -> None:
    """No one may trace or read this process, and orphans from below come to it."""
    prctl = _ctypes.dlsym(_ctypes.dlopen(None, 2), "prctl")  # pyright: ignore[reportArgumentType]
    _ctypes.call_function(prctl, (PR_SET_DUMPABLE, 0, 0, 0, 0))
    _ctypes.call_function(prctl, (PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def yield_to_the_host() -> None:
    """In a shortage of memory the kernel takes this sandbox first. Comes before `guard`, which shuts /proc/self."""
    with open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")


def descendants(keep: set[int]) -> list[int]:
    """The processes below this one, except those of `keep` and what is below them."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    parents[int(name)] = int(stat.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue
    found: list[int] = []
    frontier = {os.getpid()}
    while frontier:
        frontier = {pid for pid, parent in parents.items() if parent in frontier and pid not in keep}
        found += frontier
    return found


def memory_held(pids: list[int]) -> int:
    """The bytes that these processes hold which are no file's; what they share counts for each of them."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status", "rb") as status:
                lines = [line.split() for line in status if line.startswith((b"RssAnon", b"RssShmem"))]
        except OSError:
            continue
        total += sum(int(kilobytes) << 10 for _, kilobytes, _ in lines)
    return total


def files_held() -> int:
    """How many files the places that can be written to hold."""
    areas = [os.statvfs(place) for place in (".", "/tmp")]
    return sum(area.f_files - area.f_ffree for area in areas)


def died() -> tuple[int, int] | None:
    """A child that has died and its exit code, if there is one."""
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, os.waitstatus_to_exitcode(status)) if pid else None


def kill(pids: list[int]) -> None:
    """Kill those of the processes that still live."""
    for pid in pids:
        try:
            os.kill(pid, SIGKILL)
        except ProcessLookupError:
            continue


class Agent:
    """The loop. `children` maps a process to its number and to whether it runs alone."""

    def __init__(self, control: _socket.socket, limits: dict[str, int]) -> None:
        self.control = control
        self.limits = limits
        self.children: dict[int, tuple[int, bool]] = {}
        self.first = os.getpid() == 1
        self.cause = ""

    def serve(self) -> None:
        while True:
            poll = select.poll()
            poll.register(self.control, select.POLLIN)
            watchers = [os.pidfd_open(pid) for pid in self.children]
            for watcher in watchers:
                poll.register(watcher, select.POLLIN)
            ready = poll.poll(TICK_MILLISECONDS if self.children else None)
            for watcher in watchers:
                os.close(watcher)
            self.reap()
            if any(fd == self.control.fileno() for fd, _ in ready) and not self.obey():
                return
            if self.children:
                self.watch()

    def obey(self) -> bool:
        """Do what is asked; False when nobody is left to ask."""
        data, ancillary, _, _ = self.control.recvmsg(1 << 18, 1024, MSG_CMSG_CLOEXEC)
        if not data:
            return False
        fds = array("i")
        for _, _, packed in ancillary:
            fds.frombytes(packed)
        verb, number, *rest = marshal.loads(data)
        if verb == "start":
            argv, environment, alone = rest
            self.children[self.launch(argv, environment, fds)] = (number, alone)
            for fd in fds:
                os.close(fd)
        elif verb == "kill":
            for pid in [pid for pid, (known, _) in self.children.items() if known == number]:
                os.kill(pid, SIGKILL)
        return True

    def launch(self, argv: list[str], environment: dict[str, str], fds: array[int]) -> int:
        pid = os.fork()
        if pid:
            return pid
        try:
            os.setsid()
            for target, fd in enumerate(fds):
                os.dup2(fd, target)
            self.restrict()
            os.execvpe(argv[0], argv, environment)
        except BaseException as failure:
            os.write(2, f"{argv[0]}: {failure}\n".encode())
        finally:
            os._exit(127)

    def restrict(self) -> None:
        """The kernel's limits, for good. Without a namespace, NPROC would count the user's other processes."""
        limits = self.limits
        bounds = [
            (resource.RLIMIT_AS, limits["address_space"]),
            (resource.RLIMIT_FSIZE, limits["file_size"]),
            (resource.RLIMIT_NOFILE, limits["open_files"]),
            (resource.RLIMIT_CORE, 0),
        ]
        if self.first:
            bounds.append((resource.RLIMIT_NPROC, limits["processes"] + 1))
        for kind, bound in bounds:
            resource.setrlimit(kind, (bound, bound))
        # First a signal that tells what the matter is, then one that cannot be refused.
        resource.setrlimit(resource.RLIMIT_CPU, (limits["cpu_seconds"], limits["cpu_seconds"] + 1))

    def reap(self) -> None:
        """Bury the dead; where one ran alone, nothing that it left behind lives on."""
        while dead := died():
            pid, code = dead
            if pid not in self.children:
                continue
            number, alone = self.children.pop(pid)
            if alone:
                self.sweep(set(self.children))
            self.control.send(f"{number} {code} {self.cause}".encode())
        if not self.children:
            self.cause = ""

    def sweep(self, keep: set[int]) -> None:
        """Kill everything but `keep` and what is below it, and return when it is dead."""
        while strays := descendants(keep):
            if self.first and not keep:
                os.kill(-1, SIGKILL)
            kill(strays)
            for pid in strays:
                try:
                    os.waitpid(pid, 0)
                except ChildProcessError:
                    continue

    def watch(self) -> None:
        """End everything where all processes together hold too much."""
        pids = descendants(set())
        if len(pids) > self.limits["processes"]:
            self.cause = "processes"
        elif memory_held(pids) > self.limits["memory"]:
            self.cause = "memory"
        elif self.first and files_held() > self.limits["files"]:
            self.cause = "files"
        else:
            return
        kill(descendants(set()))


def clear_up() -> None:
    """Remove a folder that was made for this agent alone, for who made it may be dead."""
    folder = os.getcwd()
    if os.path.basename(folder).startswith(FOLDER_PREFIX):
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Say that the sandbox is ready, and serve."""
    names = ("memory", "cpu_seconds", "file_size", "open_files", "processes", "files", "address_space")
    limits: dict[str, int] = dict(zip(names, map(int, sys.argv[1:]), strict=True))
    control = _socket.socket(fileno=os.dup(0))
    os.dup2(os.open("/dev/null", os.O_RDWR), 0)
    yield_to_the_host()
    guard()
    control.send(b"ready")
    agent = Agent(control, limits)
    try:
        agent.serve()
    finally:
        agent.sweep(set())
        clear_up()


if __name__ == "__main__":
    main()
