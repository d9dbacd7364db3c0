"""The engines, reached by name so that nothing heavy loads before it is needed."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from operant.errors import UsageError
from operant.install import missing_package

if TYPE_CHECKING:
    from operant.spec.schema import Spec

ENGINES = {"torch": "operant.engines.torch", "jax": "operant.engines.jax", "language": "operant.engines.language"}


def load(name: str) -> ModuleType:
    """The engine module called `name`."""
    if name not in ENGINES:
        raise UsageError(f"there is no engine {name!r}", remedy=f"choose one of: {', '.join(ENGINES)}")
    try:
        return importlib.import_module(ENGINES[name])
    except ModuleNotFoundError as missing:
        raise missing_package(missing.name or "?", f"engine {name}") from missing


def part(name: str, module: str) -> ModuleType:
    """A module of the engine called `name`, for commands that only this engine has."""
    load(name)
    try:
        return importlib.import_module(f"{ENGINES[name]}.{module}")
    except ModuleNotFoundError as missing:
        raise missing_package(missing.name or "?", f"engine {name}") from missing


def engine_of(spec: Spec) -> ModuleType:
    """The engine that runs the spec."""
    return load(spec.engine_name)


def trains_together(spec: Spec) -> bool:
    """Whether all sessions of a trial run in one process, as lanes of one program."""
    return hasattr(engine_of(spec), "train_together")
