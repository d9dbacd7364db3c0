"""What this process uses of the machine: CPU time of itself and its children, GPUs, energy where it can be read.

Energy is read from counters that only grow: RAPL's of the processor packages, and NVML's of each GPU. Both count what
everybody on the machine uses. Where a counter is absent or may not be read, there is no number.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
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
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    for entry in PROC.glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            facts = entry.read_text().rpartition(")")[2].split()
            pid = int(entry.parent.name)
            parents[pid], spent[pid] = int(facts[1]), sum(map(int, facts[11:15])) / os.sysconf("SC_CLK_TCK")
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found, ahead = [], list(children.get(os.getpid(), ()))
    while ahead:
        found.append(ahead.pop())
        ahead += children.get(found[-1], ())
    return {pid: spent[pid] for pid in found}
