"""How the processor rounds and whether it flushes denormal numbers, passed from one process to another.

A learner flushes denormals for speed, which is a state of the thread that the physics of an
environment shares. The same environment in another process must be given the same state, or it
would differ in the last bits.
"""

from __future__ import annotations

import ctypes

import numpy as np

from operant.errors import RunError

_ENOUGH_BYTES = 256  # for any system's fenv_t


def arithmetic_mode() -> bytes:
    """The floating-point environment of this thread, as the C library gives it."""
    state = ctypes.create_string_buffer(_ENOUGH_BYTES)
    ctypes.CDLL(None).fegetenv(state)
    return bytes([flushes_denormals()]) + state.raw


def adopt_arithmetic_mode(mode: bytes) -> None:
    """Make this thread compute as the one that `mode` was taken from."""
    ctypes.CDLL(None).fesetenv(ctypes.create_string_buffer(mode[1:], _ENOUGH_BYTES))
    if flushes_denormals() != bool(mode[0]):
        raise RunError(
            "this system does not let a process take over how another treats denormal numbers",
            remedy="-s env.vectorization=serial",
        )


def flushes_denormals() -> bool:
    """Whether results too small for the normal range become zero here."""
    smallest = np.array([np.finfo(np.float64).tiny])
    return bool((smallest * 0.5)[0] == 0.0)
