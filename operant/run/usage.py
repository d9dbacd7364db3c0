"""What this process uses of the machine: CPU time of itself and its children, GPUs, energy where it can be read.

Energy is read from counters that only grow: RAPL's of the processor packages, and NVML's of each GPU. Both count what
everybody on the machine uses. Where a counter is absent or may not be read, there is no number.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

RAPL = Path("/sys/class/powercap")
PROC = Path("/proc")
NVML_LIBRARY = "libnvidia-ml.so.1"
VISIBLE = "CUDA_VISIBLE_DEVICES"
UUID_BYTES = 96


@cache
def machine() -> str:
    """A short name of this machine that tells it from others and says nothing about it."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:12]


def cpu_seconds() -> float:
    """CPU time of this process, of children that have ended, and of those that live, with their children."""
    own = os.times()
    spent = own.user + own.system + own.children_user + own.children_system
    return spent + sum(_living_descendants().values())


def cpu_joules() -> float | None:
    """Energy of the processor packages since some time in the past; None where RAPL cannot be read."""
    total = None
    for package in RAPL.glob("intel-rapl:[0-9]*"):
        # Sub-zones such as `intel-rapl:0:1` (memory, cores) are part of a package or beside it.
        if package.name.count(":") == 1:
            with suppress(OSError, ValueError):
                total = (total or 0.0) + int((package / "energy_uj").read_text()) / 1e6
    return total


def gpu_names(count: int) -> list[str]:
    """The first `count` GPUs that this process may see: their UUIDs, or numbers where NVML does not tell."""
    told = os.environ.get(VISIBLE)
    visible = [part.strip() for part in told.split(",")] if told else [str(index) for index in range(count)]
    nvml = _nvml()
    return [nvml.uuid(name) or f"gpu{name}" if nvml else f"gpu{name}" for name in visible[:count]]


def gpu_joules(names: Sequence[str]) -> dict[str, float]:
    """Energy of each of these GPUs since the driver was loaded, of those that tell it."""
    nvml = _nvml()
    found = {name: nvml.joules(name) for name in names} if nvml else {}
    return {name: joules for name, joules in found.items() if joules is not None}


class _Nvml:
    """The few calls of NVIDIA's management library that are needed, without a package for it."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(NVML_LIBRARY)
        if self._library.nvmlInit_v2() != 0:
            raise OSError("NVML does not start")

    def uuid(self, name: str) -> str | None:
        """The UUID of a GPU given by its number or UUID."""
        handle, text = self._handle(name), ctypes.create_string_buffer(UUID_BYTES)
        if handle is None or self._library.nvmlDeviceGetUUID(handle, text, UUID_BYTES) != 0:
            return None
        return text.value.decode()

    def joules(self, name: str) -> float | None:
        """Energy since the driver was loaded; None of a GPU that has no counter."""
        handle, millijoules = self._handle(name), ctypes.c_ulonglong()
        if handle is None or self._library.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(millijoules)) != 0:
            return None
        return millijoules.value / 1000

    def _handle(self, name: str) -> ctypes.c_void_p | None:
        handle = ctypes.c_void_p()
        if name.isdigit():
            code = self._library.nvmlDeviceGetHandleByIndex_v2(int(name), ctypes.byref(handle))
        else:
            code = self._library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle))
        return handle if code == 0 else None


@cache
def _nvml() -> _Nvml | None:
    try:
        return _Nvml()
    except (OSError, AttributeError):
        return None


def _living_descendants() -> dict[int, float]:
    """CPU seconds of each living descendant, with those of its children that have ended; empty without /proc."""
    listed = (PROC / "self" / "task" / str(threading.get_native_id()) / "children").exists()
    families = {} if listed else _families()
    found: dict[int, float] = {}
    ahead = [os.getpid()]
    while ahead:
        # One may end while we look.
        with suppress(OSError, ValueError, IndexError):
            pid = ahead.pop()
            found[pid] = sum(map(int, _stat(pid)[11:15])) / os.sysconf("SC_CLK_TCK")
            ahead += _listed_children(pid) if listed else families.get(pid, [])
    found.pop(os.getpid(), None)
    return found


def _listed_children(pid: int) -> list[int]:
    """The children of a process, on a kernel that lists them."""
    threads = [PROC / str(pid) / "task" / str(thread) for thread in os.listdir(PROC / str(pid) / "task")]
    return [int(child) for thread in threads for child in (thread / "children").read_text().split()]


def _families() -> dict[int, list[int]]:
    """The children of every process, found by asking each for its parent."""
    children: dict[int, list[int]] = {}
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            children.setdefault(int(_stat(int(folder.name))[1]), []).append(int(folder.name))
    return children


def _stat(pid: int) -> list[str]:
    """The fields of a process from its state on; its name, which may hold anything, left out."""
    return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
