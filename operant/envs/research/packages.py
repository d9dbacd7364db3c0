"""Packages of this Python that a sandbox may use: each is shown by itself, read-only, and nothing beside it.

Showing the whole folder of packages would show Operant's graders too.
"""

from __future__ import annotations

import functools
import sys
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
NO_PACKAGES = ("..", "__pycache__", "bin")  # of a record: programs, and what every package shares


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
    found: dict[str, None] = {}
    for name in names:
        found |= dict.fromkeys(_places(name))
    for distribution in _with_needs([known for name in names if (known := _distribution(name))]):
        found |= dict.fromkeys(_recorded(distribution))
    searched = {place: number for number, place in enumerate(reversed(sys.path))}  # as here, the first one counts
    roots = sorted({str(Path(place).parent) for place in found}, key=lambda root: -searched.get(root, -1))
    return Packages(tuple(found), {**ONE_THREAD, **({"PYTHONPATH": ":".join(roots)} if roots else {})})


def _with_needs(wanted: Sequence[metadata.Distribution]) -> list[metadata.Distribution]:
    """Distributions and, as far as these are installed, those that they need."""
    found: dict[str, metadata.Distribution] = {}
    waiting = list(wanted)
    while waiting:
        distribution = waiting.pop()
        if distribution.name in found:
            continue
        found[distribution.name] = distribution
        needs = map(Requirement, distribution.requires or ())
        names = [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
        waiting += [known for name in names if (known := _named(name))]
    return list(found.values())


def _distribution(name: str) -> metadata.Distribution | None:
    """What a package was installed by: mostly it is called the same, and only else all are searched."""
    return _named(name) or _named(_owners().get(name, [""])[0])


@functools.cache
def _owners() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def _named(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        return None


def _recorded(distribution: metadata.Distribution) -> list[str]:
    """The folders and files that a distribution has put among the packages, by its own record.

    Libraries that a wheel puts beside its package are among them, whatever their folder is called, and its metadata,
    which some packages read when they are imported.
    """
    tops = dict.fromkeys(file.parts[0] for file in distribution.files or () if file.parts[0] not in NO_PACKAGES)
    places = [Path(str(distribution.locate_file(top))) for top in tops]
    return [str(place) for place in places if place.suffix != ".pth" and place.exists()]


def _places(name: str) -> Sequence[str]:
    """The folders or the file of a package by where it is imported from, for those that have no record."""
    found = find_spec(name)
    if found is None or (found.origin is None and not found.submodule_search_locations):
        raise UsageError(
            f"the sandbox is to have the package {name}, which is not installed", remedy=install_module(name)
        )
    return [str(Path(place)) for place in found.submodule_search_locations or [str(found.origin)]]
