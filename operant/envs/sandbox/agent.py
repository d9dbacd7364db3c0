"""The first process of a sandbox: it starts programs when asked, watches what they use and buries the dead.

It runs inside, alone, from its source text, so it imports only what loads at once: with `socket`, `signal` and
`ctypes` a sandbox would take twice as long to open. Requests come with three open files over the socket that is
its standard input, and when that socket closes it ends, and every process with it. As process 1 of its namespace
it cannot be killed from inside, and being undumpable it cannot be traced.

It shares a user, a work area and a process table with code that may mean harm, so nothing that such code does to them
may end it: places are known by open folders and not by names, and what fails once is tried again at the next turn.
"""

from __future__ import annotations

import _ctypes
import _signal  # pyright: ignore[reportMissingImports]
import _socket
import marshal
import os
import resource
import select
import sys
from array import array

SIGKILL = 9
TICK_MILLISECONDS = 50
TICK_SECONDS = TICK_MILLISECONDS / 1000
NOT_STARTED = 127
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
MSG_CMSG_CLOEXEC = 0x40000000
FOLDER_PREFIX = "operant-unsafe-"
HELD = (b"RssAnon", b"RssShmem", b"VmPTE")
KILLS = b"oom_kill"
NUMBERS = ("memory", "cpu_seconds", "file_size", "open_files", "processes", "files", "address_space")
NUMBERS += ("socket_bytes", "tcp_bytes", "tcp_most")


def guard() -> None:
    """No one may trace or read this process, and orphans from below come to it."""
    prctl = _ctypes.dlsym(_ctypes.dlopen(None, 2), "prctl")  # pyright: ignore[reportArgumentType]
    _ctypes.call_function(prctl, (PR_SET_DUMPABLE, 0, 0, 0, 0))
    _ctypes.call_function(prctl, (PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
    # The kernel keeps signals of its children from process 1, but for those that Python has a handler for.
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)


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
                lines = [line.split() for line in status if line.startswith(HELD)]
        except OSError:
            continue
        total += sum(int(kilobytes) << 10 for _, kilobytes, _ in lines)
    return total


def sockets_open() -> tuple[int, int]:
    """How many sockets this network has, whoever holds them, and how many of these speak TCP."""
    with open("/proc/net/sockstat", "rb") as counts:
        numbers = {line.split()[0]: int(line.split()[2]) for line in counts}
    return numbers[b"sockets:"], numbers.get(b"TCP:", 0)


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
        except OSError:
            continue


class Agent:
    """The loop. `children` maps a process to its number and to whether it runs alone.

    `group` are open files of the sandbox's control group: where the kernel counts whom it killed for want of memory,
    where it counts bytes of TCP (-1 where there is no such file), and those by which a process enters the group.
    """

    def __init__(self, control: _socket.socket, limits: dict[str, int], group: list[int]) -> None:
        self.control = control
        self.limits = limits
        self.kills, self.tcp, *self.joins = group
        self.children: dict[int, tuple[int, bool]] = {}
        self.first = os.getpid() == 1
        self.areas = [os.open(place, os.O_RDONLY | os.O_DIRECTORY) for place in (".", "/tmp")] if self.first else []
        self.killed = self.kills_counted()
        self.cause = ""

    def serve(self) -> None:
        """Serve until nobody is left to ask."""
        while True:
            try:
                if not self.turn():
                    return
            except (OSError, MemoryError, ValueError):
                select.select([], [], [], TICK_SECONDS)

    def turn(self) -> bool:
        """Wait for something to happen, or for a tick, and see to it; False when nobody is left to ask."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        watchers: list[int] = []
        try:
            for pid in self.children:
                watchers.append(os.pidfd_open(pid))
                poll.register(watchers[-1], select.POLLIN)
            ready = poll.poll(TICK_MILLISECONDS if self.children else None)
        finally:
            for watcher in watchers:
                os.close(watcher)
        self.reap()
        if any(fd == self.control.fileno() for fd, _ in ready) and not self.obey():
            return False
        if self.children:
            self.watch()
        return True

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
            try:
                self.children[self.launch(argv, environment, fds)] = (number, alone)
            except OSError:  # no further process can be made
                self.control.send(f"{number} {NOT_STARTED} processes".encode())
            finally:
                for fd in fds:
                    os.close(fd)
        elif verb == "kill":
            kill([pid for pid, (known, _) in self.children.items() if known == number])
        return True

    def launch(self, argv: list[str], environment: dict[str, str], fds: array[int]) -> int:
        pid = os.fork()
        if pid:
            return pid
        try:
            os.setsid()
            for target, fd in enumerate(fds):
                os.dup2(fd, target)
            for group in self.joins:
                os.write(group, b"0")  # this process
            self.restrict()
            _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
            os.execvpe(argv[0], argv, environment)
        except BaseException as failure:
            os.write(2, f"{argv[0]}: {failure}\n".encode())
        finally:
            os._exit(NOT_STARTED)

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
            if not self.cause and self.out_of_memory():
                self.cause = "memory"
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
        elif self.out_of_memory() if self.kills >= 0 else self.held(pids) > self.limits["memory"]:
            self.cause = "memory"
        elif self.files_held() > self.limits["files"]:
            self.cause = "files"
        else:
            return
        kill(descendants(set()))

    def held(self, pids: list[int]) -> int:
        """The most bytes of memory that the sandbox can hold now, counted without the kernel's help."""
        total = memory_held(pids)
        if not self.first:
            return total
        for area in map(os.fstatvfs, self.areas):
            total += (area.f_blocks - area.f_bfree) * area.f_frsize
        if self.limits["socket_bytes"] > 0:
            every, tcp = sockets_open()
            total += every * self.limits["socket_bytes"] + tcp * self.limits["tcp_bytes"]
        return total

    def files_held(self) -> int:
        """How many files the places that can be written to hold."""
        return sum(area.f_files - area.f_ffree for area in map(os.fstatvfs, self.areas))

    def kills_counted(self) -> int:
        """How many processes of the group the kernel has killed for want of memory."""
        counts = os.pread(self.kills, 4096, 0).split() if self.kills >= 0 else []
        return int(counts[counts.index(KILLS) + 1]) if KILLS in counts else 0

    def out_of_memory(self) -> bool:
        """Whether the kernel has killed anyone since this was last asked, or TCP holds more than its share."""
        before, self.killed = self.killed, self.kills_counted()
        tcp = int(os.pread(self.tcp, 64, 0)) if self.tcp >= 0 else 0
        return self.killed > before or tcp > self.limits["tcp_most"]


def clear_up(folder: str) -> None:
    """Remove a folder that was made for this agent alone, for who made it may be dead."""
    if os.path.basename(folder).startswith(FOLDER_PREFIX):
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Say that the sandbox is ready, and serve."""
    numbers = list(map(int, sys.argv[1:]))
    limits: dict[str, int] = dict(zip(NUMBERS, numbers, strict=False))
    group = numbers[len(NUMBERS) :]
    for fd in group:
        if fd >= 0:
            os.set_inheritable(fd, False)
    control = _socket.socket(fileno=os.dup(0))
    os.dup2(os.open("/dev/null", os.O_RDWR), 0)
    folder = os.getcwd()
    guard()
    agent = Agent(control, limits, group)
    control.send(b"ready")
    try:
        agent.serve()
    finally:
        agent.sweep(set())
        clear_up(folder)


if __name__ == "__main__":
    main()
