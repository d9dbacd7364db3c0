"""Control groups: the kernel itself counts what the programs of a sandbox hold, in whatever form they hold it.

A watch over processes sees their pages only. Socket buffers, pipes, files of the work area, shared pages that nobody
has mapped and the kernel's own tables belong to no process, and a control group counts them all. Both versions are
used, where this process may make a group: as root, or where the user's own branch was delegated to them.
"""

from __future__ import annotations

import fcntl
import functools
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from operant.envs.sandbox.limits import Limits

PREFIX = "operant-sandbox-"
PROCESSES = "cgroup.procs"
CONTROLLERS = ("memory", "pids")
REMOVE_SECONDS = 2.0
# Version 1 counts the buffers of TCP apart from all other memory, and only asks the sender to slow down.
TCP_SHARE, TCP_USED = 16, "memory.kmem.tcp.usage_in_bytes"
MOUNTS, MEMBERSHIP = "/proc/self/mountinfo", "/proc/self/cgroup"


@dataclass(frozen=True)
class Parent:
    """A folder of the control file system in which groups can be made, and the controllers that count there."""

    path: Path
    version: int
    controllers: tuple[str, ...]


class Group:
    """The group of one sandbox: its programs, but not the agent that starts them (final)."""

    def __init__(self, parents: tuple[Parent, ...], limits: Limits) -> None:
        self._folders: list[Path] = []
        self._held: list[int] = []
        self.joins: list[int] = []
        self.kills = self.tcp = -1
        try:
            for parent in parents:
                self._make(parent, limits)
        except OSError:
            self.close()
            raise

    @property
    def fds(self) -> tuple[int, ...]:
        """Open files for the agent: where kills are counted, and bytes of TCP, and those by which a process joins."""
        return (self.kills, self.tcp, *self.joins)

    def _make(self, parent: Parent, limits: Limits) -> None:
        folder = parent.path / f"{PREFIX}{uuid.uuid4().hex}"
        folder.mkdir(mode=0o755)
        self._folders.append(folder)
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        self._held.append(held)
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # `sweep` removes those that nobody holds
        for file, value, everywhere in settings(parent, limits):
            if everywhere or (folder / file).exists():
                (folder / file).write_text(str(value))
        self.joins.append(os.open(folder / PROCESSES, os.O_WRONLY))
        if "memory" in parent.controllers:
            events = "memory.oom_control" if parent.version == 1 else "memory.events"
            self.kills = os.open(folder / events, os.O_RDONLY)
        if (folder / TCP_USED).exists():
            self.tcp = os.open(folder / TCP_USED, os.O_RDONLY)

    def close_fds(self) -> None:
        """Close the open files that were for the agent."""
        for fd in self.fds:
            if fd >= 0:
                os.close(fd)
        self.joins, self.kills, self.tcp = [], -1, -1

    def close(self) -> None:
        """Remove the group, whose processes are dead; one that lingers is removed by a later `sweep`."""
        self.close_fds()
        for folder in self._folders:
            _remove(folder)
        for fd in self._held:
            os.close(fd)
        self._folders, self._held = [], []


def settings(parent: Parent, limits: Limits) -> Iterator[tuple[str, int, bool]]:
    """The files of a group, what is to be written into them in this order, and whether every kernel has them."""
    if "memory" in parent.controllers and parent.version == 1:
        yield "memory.limit_in_bytes", limits.memory, True
        yield "memory.memsw.limit_in_bytes", limits.memory, False
        yield "memory.kmem.tcp.limit_in_bytes", limits.memory // TCP_SHARE, False
    elif "memory" in parent.controllers:
        yield "memory.max", limits.memory, True
        yield "memory.swap.max", 0, False
        yield "memory.oom.group", 1, False
    if "pids" in parent.controllers:
        yield "pids.max", limits.processes, True


@functools.cache
def parents() -> tuple[Parent, ...]:
    """Where groups can be made here: one place that counts memory, and where that is another, one that counts tasks.

    Nowhere, if memory cannot be counted. It is tried once, by making a group.
    """
    places = tuple(_usable(read(MOUNTS), read(MEMBERSHIP)))
    if not any("memory" in place.controllers for place in places):
        return ()
    for place in places:
        sweep(place.path)
    try:
        Group(places, Limits()).close()
    except OSError:
        return ()
    return places


def make_group(limits: Limits) -> Group | None:
    """A fresh group with these limits; None where this machine gives none."""
    return Group(found, limits) if (found := parents()) else None


def sweep(parent: Path) -> None:
    """Remove groups whose makers have died: nobody holds their lock, and nothing runs in them."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                folder.rmdir()
            finally:
                os.close(fd)


def read(path: str) -> str:
    """A file of /proc; empty where there is none."""
    with suppress(OSError):
        return Path(path).read_text(encoding="utf-8", errors="replace")
    return ""


def _usable(mounts: str, membership: str) -> Iterator[Parent]:
    """The folders of this process's own groups, or above them, in which others can be made."""
    own = dict(_memberships(membership))
    for place, root, kind, options in _mounts(mounts):
        if kind == "cgroup2":
            if found := _second_version(place, _below(own.get("", "/"), root)):
                yield found
        else:
            named = tuple(name for name in CONTROLLERS if name in options)
            folder = next((_below(own[name], root) for name in named if name in own), None)
            if named and folder is not None and os.access(place / folder, os.W_OK):
                yield Parent(place / folder, 1, named)


def _second_version(mount: Path, own: str) -> Parent | None:
    """The nearest folder from our own group upwards whose children have their memory counted, and that is ours."""
    for folder in (mount / own, *(mount / own).parents):
        if not folder.is_relative_to(mount):
            return None
        given = read(str(folder / "cgroup.subtree_control")).split()
        if "memory" in given and os.access(folder, os.W_OK) and os.access(folder / PROCESSES, os.W_OK):
            return Parent(folder, 2, tuple(name for name in CONTROLLERS if name in given))
    return None


def _memberships(text: str) -> Iterator[tuple[str, str]]:
    """Our own group by controller; by the empty name for version 2."""
    for line in text.splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            yield name, path


def _mounts(text: str) -> Iterator[tuple[Path, str, str, list[str]]]:
    """The control file systems: where each is, which part of it that is, its kind and its options."""
    for line in text.splitlines():
        front, _, back = line.partition(" - ")
        fields, (kind, _, options) = front.split(), [*back.split(), "", "", ""][:3]
        if kind in ("cgroup", "cgroup2"):
            yield Path(fields[4]), fields[3], kind, options.split(",")


def _below(path: str, root: str) -> str:
    """A group's path as it is found below a mount that shows only a part of the tree."""
    inside = path == root or path.startswith(root.rstrip("/") + "/")
    return path.removeprefix(root.rstrip("/")).strip("/") if inside else ""


def _remove(folder: Path) -> None:
    """Remove a group; the dead are counted for a moment after their end."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while True:
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                return
            time.sleep(0.002)
