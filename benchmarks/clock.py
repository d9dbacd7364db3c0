"""How one training run is timed: by its process's CPU seconds and by the clock, with so many threads as are asked for.

Import it before numpy, torch or jax: the limits on threads are read when those are loaded.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from typing import Any

THREADS = os.environ.get("BENCHMARK_THREADS", "1")
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = THREADS


def limit_xla() -> None:
    """The same limit for a peer that computes with JAX, and no compiled program from an earlier run."""
    eigen = "false" if THREADS == "1" else "true"
    os.environ |= {"NPROC": THREADS, "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={eigen}", "JAX_PLATFORMS": "cpu"}


def cpu_seconds() -> float:
    """CPU time of this process, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Stopwatch:
    """Wall and CPU seconds since it was made."""

    def __init__(self) -> None:
        self._began = time.perf_counter(), cpu_seconds()

    def read(self) -> dict[str, float]:
        """Both, by the names that results have for them."""
        return {"seconds": time.perf_counter() - self._began[0], "cpu_seconds": cpu_seconds() - self._began[1]}


def timed(train: Callable[[], Any]) -> dict[str, float]:
    """Wall and CPU seconds of `train`."""
    watch = Stopwatch()
    train()
    return watch.read()
