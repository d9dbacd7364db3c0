"""Packages of this Python that a sandbox may use: each is shown by itself, read-only, and nothing beside it.

Showing the whole folder of packages would show Operant's graders too.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement

from operant.errors import UsageError
from operant.install import install_module

# A sandbox has few processes, and threads count: numerical libraries would start one for every core.
ONE_THREAD: dict[str, str] = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Packages:
    """What is shown of each package, and the environment in which programs find them."""

    folders: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: dict(ONE_THREAD))


def installed(name: str) -> bool:
    """Whether a package can be imported here."""
    return find_spec(name) is not None


@functools.cache
def packages(names: tuple[str, ...]) -> Packages:
    """Packages by the names they are imported by, with those that they need; `UsageError` for one that is absent."""
    folders = [place for name in _with_needs(names) for place in _places(name)]
    roots = dict.fromkeys(str(Path(folder).parent) for folder in folders)
    return Packages(tuple(folders), {**ONE_THREAD, **({"PYTHONPATH": ":".join(roots)} if roots else {})})


def _with_needs(names: Sequence[str]) -> list[str]:
    """The packages and, as far as these are installed, those that they need."""
    found: dict[str, None] = {}
    waiting = [(name, _distribution(name)) for name in names]
    while waiting:
        name, distribution = waiting.pop()
        if name in found:
            continue
        found[name] = None
        for line in (distribution.requires or ()) if distribution else ():
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                waiting += _modules(need.name)
    return list(found)


def _distribution(name: str) -> metadata.Distribution | None:
    """What a package was installed by: mostly it is called the same, and only else all are searched."""
    for known in (lambda: name, lambda: metadata.packages_distributions().get(name, [""])[0]):
        try:
            return metadata.distribution(known())
        except (metadata.PackageNotFoundError, ValueError):
            continue
    return None


def _modules(name: str) -> list[tuple[str, metadata.Distribution]]:
    """The packages that an installed distribution gives."""
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return []
    listed = (distribution.read_text("top_level.txt") or name.replace("-", "_")).split()
    return [(module, distribution) for module in listed if installed(module)]


def _places(name: str) -> Sequence[str]:
    """The folder or file of a package, and the folder of libraries that some wheels put beside it."""
    found = find_spec(name)
    if found is None or found.origin is None:
        raise UsageError(
            f"the sandbox is to have the package {name}, which is not installed", remedy=install_module(name)
        )
    place = Path(found.origin)
    place = place.parent if found.submodule_search_locations else place
    beside = place.with_name(f"{name}.libs")
    return [str(place), *([str(beside)] if beside.is_dir() else [])]
