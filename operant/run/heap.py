"""How the C library keeps memory that tensors give back.

By default glibc returns large blocks to the kernel at once, and the next minibatch faults its pages in again: on the
CPU that costs images about as much as a convolution, and a small language model a few per cent of its time. Kept in the
heap, they are used again as they are.
"""

from __future__ import annotations

import ctypes
from typing import Any

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of <malloc.h>
LARGEST_KEPT = 256 << 20  # bytes of one block; a replay memory is larger, and stays outside
MOST_KEPT = 1 << 30  # bytes in all that may lie unused at the end of the heap


def keep_large_blocks(libc: Any = None) -> bool:
    """Let freed blocks stay in this process's heap; False where the C library has no such choice."""
    library = ctypes.CDLL(None) if libc is None else libc
    if not hasattr(library, "mallopt"):
        return False
    return bool(library.mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT) and library.mallopt(M_TRIM_THRESHOLD, MOST_KEPT))
