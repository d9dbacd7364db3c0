"""Devices and their memory: the one that is here, or another that is named."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from operant.errors import UsageError

GIB = 2**30
KNOWN_GPUS = {
    "b200": 178.4,
    "h200": 139.8,
    "h100": 79.1,
    "h100-nvl": 93.1,
    "gh200": 94.5,
    "a100-80": 79.1,
    "a100-40": 39.4,
    "l40s": 44.4,
    "a6000": 47.4,
    "v100-32": 31.7,
    "v100-16": 15.8,
    "a10": 22.0,
    "l4": 22.0,
    "t4": 14.6,
    "rtx5090": 31.4,
    "rtx4090": 23.5,
    "rtx3090": 23.5,
}
"""GiB that torch reports of GPUs, without what the driver keeps."""

CUDA_BYTES = GIB
"""Of a GPU's memory, for CUDA itself and for what lies between tensors."""

UNITS = {"gib": GIB, "gb": 10**9, "mib": 2**20, "mb": 10**6}


@dataclass(frozen=True)
class Device:
    """A device by name, and the bytes that a session may fill; None where nobody knows."""

    name: str
    memory: int | None
    on_gpu: bool = True

    @property
    def room(self) -> int | None:
        """Bytes for tensors."""
        return self.memory if self.memory is None or not self.on_gpu else max(0, self.memory - CUDA_BYTES)


def named_device(text: str) -> Device:
    """A GPU by its name, or by its memory: h100, 80GiB, 24 GB."""
    name = text.strip().lower()
    if name in KNOWN_GPUS:
        return Device(name, int(KNOWN_GPUS[name] * GIB))
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*(gib|gb|mib|mb)", name)
    if found is None or float(found[1]) <= 0:
        raise UsageError(
            f"--device-memory {text!r} is neither an amount nor a GPU that is known",
            remedy=f"80GiB, 24GB, or one of: {', '.join(KNOWN_GPUS)}",
        )
    return Device(f"a GPU of {text.strip()}", int(float(found[1]) * UNITS[found[2]]))


def this_device(asked: str) -> Device:
    """The device that a session with this `meta.device` would train on."""
    import torch

    from operant.engines.language.policy.build import choose_device

    if choose_device(asked) == "cuda":
        properties = torch.cuda.get_device_properties(0)
        return Device(properties.name, int(properties.total_memory))
    return Device("this machine's CPU", _host_memory(), on_gpu=False)


def _host_memory() -> int | None:
    """Bytes of this machine, or of the control group that this process is held in."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if limit.is_file() else "max"
    return min(found, int(text)) if text.isdigit() else found
