"""How the machine's cores are shared out among the sessions of a trial."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

# One thread unless `meta.threads` asks for more. Small networks gain nothing from a second thread and lose a
# factor of ten and more on a busy machine; and a number that does not depend on the cores gives the same
# results on machines of every size.
UNASKED_THREADS = 1

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
# Where torch allocates by mimalloc (Linux on Arm), memory that tensors give back is taken from the process at once, and
# faulted in again by the next update, which cost a language model 6 % of its time. -1 leaves it where it is; what
# `operant.run.heap` does for glibc.
_KEEPS_MEMORY = "MIMALLOC_PURGE_DELAY"
_CGROUP_QUOTA = Path("/sys/fs/cgroup/cpu.max")


@dataclass(frozen=True)
class Budget:
    """How many sessions run at once, and how many threads each may use."""

    workers: int
    threads: int


def usable_cores() -> int:
    """Cores this process may use: its affinity, and the container's quota where there is one."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(allowed, _container_quota() or allowed))


def share(sessions: int, threads: int | None = None, cores: int | None = None, processes: int = 1) -> Budget:
    """Share `cores` among `sessions` of so many `processes` each.

    `threads`, those of one process, are what the user asked for (`meta.threads`) or a run recorded.
    """
    threads = threads or UNASKED_THREADS
    at_once = max(1, (cores or usable_cores()) // (threads * processes))
    return Budget(workers=min(max(1, sessions), at_once), threads=threads)


def cores_each(sessions: int) -> int:
    """Cores that one of `sessions` running at once may call its own."""
    return max(1, usable_cores() // sessions)


def library_environment(threads: int) -> dict[str, str]:
    """The variables that numerical libraries read, once, when they are first loaded."""
    kept = {_KEEPS_MEMORY: os.environ.get(_KEEPS_MEMORY, "-1")}
    return dict.fromkeys(_THREAD_VARIABLES, str(threads)) | kept


def _container_quota(path: Path = _CGROUP_QUOTA) -> int | None:
    """Whole cores granted by the control group, rounded up; None when there is no limit."""
    try:
        quota, period = path.read_text(encoding="ascii").split()
        return None if quota == "max" else math.ceil(int(quota) / int(period))
    except (OSError, ValueError):
        return None
