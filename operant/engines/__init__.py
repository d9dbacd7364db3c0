"""The engines, reached by name so that nothing heavy loads before it is needed."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from operant.errors import UsageError

if TYPE_CHECKING:
    from operant.spec.schema import Spec

ENGINES = {"deep": "operant.engines.deep"}

# Import name -> what to install; named in the error when an engine's package is absent.
INSTALLS = {"torch": "uv sync", "gymnasium": "uv sync", "safetensors": "uv sync"}


def load(name: str) -> ModuleType:
    """The engine module called `name`."""
    if name not in ENGINES:
        raise UsageError(f"there is no engine {name!r}", remedy=f"choose one of: {', '.join(ENGINES)}")
    try:
        return importlib.import_module(ENGINES[name])
    except ModuleNotFoundError as missing:
        raise missing_package(missing.name or "?", f"engine {name}") from missing


def engine_of(spec: Spec) -> ModuleType:
    """The engine that runs the spec's algorithm."""
    return load(type(spec.agent.algorithm).ENGINE)


def missing_package(package: str, wanted_by: str) -> UsageError:
    """The one clear line for an optional package that is absent."""
    command = INSTALLS.get(package.partition(".")[0], f"uv pip install {package}")
    return UsageError(f"{wanted_by} needs the package {package}, which is not installed", remedy=command)
