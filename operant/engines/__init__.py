"""The engines, reached by name so that nothing heavy loads before it is needed."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

from operant.errors import UsageError
from operant.install import missing_package

if TYPE_CHECKING:
    from operant.spec.schema import Spec

# The package that each engine computes with, and the extra of Operant that brings it.
NEEDS = {"torch": ("torch", "deep"), "jax": ("jax", "jax"), "language": ("torch", "language")}
ENGINES = {"torch": "operant.engines.torch", "jax": "operant.engines.jax", "language": "operant.engines.language"}


def load(name: str) -> ModuleType:
    """The engine module called `name`."""
    if name not in ENGINES:
        raise UsageError(f"there is no engine {name!r}", remedy=f"choose one of: {', '.join(ENGINES)}")
    try:
        return importlib.import_module(ENGINES[name])
    except ModuleNotFoundError as missing:
        raise _missing(missing.name or "?", name) from missing


def part(name: str, module: str) -> ModuleType:
    """A module of the engine called `name`, for commands that only this engine has."""
    load(name)
    try:
        return importlib.import_module(f"{ENGINES[name]}.{module}")
    except ModuleNotFoundError as missing:
        raise _missing(missing.name or "?", name) from missing


def engine_of(spec: Spec) -> ModuleType:
    """The engine that runs the spec."""
    return load(spec.engine_name)


def missing_for(spec: Spec) -> UsageError | None:
    """The error that names the install command, where the package that the spec's engine computes with is absent."""
    package, _ = NEEDS[spec.engine_name]
    return None if find_spec(package) else _missing(package, spec.engine_name)


def require_packages(spec: Spec) -> None:
    """Refuse, before anything is written, what cannot run without a package that is absent."""
    missing = missing_for(spec)
    if missing is not None:
        raise missing


def trains_together(spec: Spec) -> bool:
    """Whether all sessions of a trial run in one process, as lanes of one program."""
    engine = engine_of(spec)
    return hasattr(engine, "train_together") and engine.has_lanes(spec)


def _missing(module: str, engine: str) -> UsageError:
    package, extra = NEEDS[engine]
    return missing_package(module, f"the {engine} engine", extra if module == package else None)
