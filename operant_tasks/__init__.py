"""Operant's tasks as an environment of the package verifiers: `operant_tasks`, of both generations of its API.

`load_environment(task="gsm8k", ...)` is for the classic API (verifiers up to 0.3), `OperantTaskset` and what belongs
to it for today's (from 0.4). Each is imported when it is asked for, as no installation has to have both.
"""

from __future__ import annotations

from typing import Any

__all__ = ["OperantChat", "OperantEnv", "OperantTaskset"]  # pyright: ignore[reportUnsupportedDunderAll]


def load_environment(task: str = "arithmetic", **arguments: Any) -> Any:
    """The environment of a task of the classic API; see `operant_tasks.classic.load`."""
    from operant_tasks.classic import load

    return load(task, **arguments)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from operant_tasks import modern

    return getattr(modern, name)
