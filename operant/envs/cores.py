"""How many cores a session may use; a launcher says it in an environment variable."""

from __future__ import annotations

import os

CORES_VARIABLE = "OPERANT_CORES"


def cores_here() -> int:
    """Cores that this session may use: its share as the launcher counted it, else all that the process may run on."""
    share = os.environ.get(CORES_VARIABLE, "")
    if share.isdecimal():
        return max(1, int(share))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
