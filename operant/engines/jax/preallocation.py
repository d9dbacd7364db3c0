"""Whether JAX takes most of a GPU's memory at once, as by itself, or as it is needed; JAX is not loaded for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

PREALLOCATE_VARIABLE = "XLA_PYTHON_CLIENT_PREALLOCATE"


def take_memory_as_needed() -> None:
    """Let JAX allocate as it needs, unless the user said otherwise; without effect on a GPU that it uses already."""
    os.environ.setdefault(PREALLOCATE_VARIABLE, "false")


@contextmanager
def memory_as_needed() -> Iterator[None]:
    """If JAX begins to use a GPU inside, it allocates as it needs; the environment is left as it was.

    A command that checks a spec lives as long as its sessions do, and they need that memory.
    """
    asked = os.environ.get(PREALLOCATE_VARIABLE)
    take_memory_as_needed()
    try:
        yield
    finally:
        if asked is None:
            del os.environ[PREALLOCATE_VARIABLE]
