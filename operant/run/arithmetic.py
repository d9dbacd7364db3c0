"""What decides the last bits of a sum: vector instructions, linear algebra library, threads.

Only libraries that the session has loaded already are asked, so that recording starts none.
"""

from __future__ import annotations

import sys
from typing import Any


def describe_arithmetic() -> dict[str, Any]:
    """Vector instructions and BLAS of numpy, and the instruction set and threads that torch has chosen."""
    return {name: facts for name, facts in (("numpy", _numpy()), ("torch", _torch())) if facts}


def _numpy() -> dict[str, Any]:
    import numpy as np

    config: Any = np.show_config(mode="dicts") or {}
    blas = config.get("Build Dependencies", {}).get("blas", {})
    simd = config.get("SIMD Extensions", {})
    return {
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
        "instructions": [*simd.get("baseline", ()), *simd.get("found", ())],
    }


def _torch() -> dict[str, Any]:
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return {}
    return {
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "mkl": torch.backends.mkl.is_available(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "matmul_precision": torch.get_float32_matmul_precision(),
    }
