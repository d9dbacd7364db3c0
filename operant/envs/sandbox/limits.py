"""What a program in a sandbox may use, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MEBIBYTE = 1 << 20

Cause = Literal["", "time", "memory", "processes", "files"]


@dataclass(frozen=True)
class Limits:
    """The most that a sandbox may use; nothing in it reaches a network, unless `network` says so.

    `memory` is for everything together: pages of processes, files of the work area and of /tmp, which lie in memory,
    socket buffers and the kernel's own tables. A control group counts them where one can be made (cgroup.py); elsewhere
    a watch that looks every twentieth of a second counts what can be seen, and calls that would hide memory from it are
    refused. No process may map more than `memory` either, unless `maps_freely` or `gpu` say so: drivers and large
    libraries map far more than they hold. `processes` counts threads too. `disk` caps the work area and /tmp, each,
    and `files` how many files they hold. `output` is what is kept of each stream of a run, the rest is dropped.
    `gpu` shows the machine's accelerators.
    """

    cpu_seconds: int = 30
    memory: int = 512 * MEBIBYTE
    processes: int = 32
    file_size: int = 64 * MEBIBYTE
    disk: int = 128 * MEBIBYTE
    files: int = 20_000
    open_files: int = 256
    output: int = MEBIBYTE
    network: bool = False
    gpu: bool = False
    maps_freely: bool = False

    @property
    def address_space(self) -> int:
        """What a process may map, for the kernel; -1 for no limit."""
        return -1 if self.gpu or self.maps_freely else self.memory


@dataclass(frozen=True)
class Ran:
    """How a run ended: `code` is the exit status, or minus the signal that ended it.

    `killed` names the limit for which the sandbox itself ended the run; `cut` says that output was dropped. Of the
    standard output `dropped` bytes were, and `tail` is the end of those.
    """

    code: int
    out: bytes
    err: bytes
    seconds: float
    killed: Cause = ""
    cut: bool = False
    dropped: int = 0
    tail: bytes = b""

    @property
    def timed_out(self) -> bool:
        """Whether the run was ended because its time was over."""
        return self.killed == "time"
