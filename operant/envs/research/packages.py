"""Packages of this Python that a sandbox may use: each is shown by itself, read-only, and nothing beside it.

Showing the whole folder of packages would show Operant's graders too.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from operant.errors import UsageError

# A sandbox has few processes, and threads count: numerical libraries would start one for every core.
ONE_THREAD: dict[str, str] = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Packages:
    """What is shown of each package, and the environment in which programs find them."""

    folders: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: dict(ONE_THREAD))


@functools.cache
def packages(names: tuple[str, ...]) -> Packages:
    """Packages by the names they are imported by; `UsageError` for one that is not installed."""
    folders = [place for name in names for place in _places(name)]
    roots = dict.fromkeys(str(Path(folder).parent) for folder in folders)
    return Packages(tuple(folders), {**ONE_THREAD, **({"PYTHONPATH": ":".join(roots)} if roots else {})})


def _places(name: str) -> Sequence[str]:
    """The folder or file of a package, and the folder of libraries that some wheels put beside it."""
    found = find_spec(name)
    if found is None or found.origin is None:
        raise UsageError(
            f"the sandbox is to have the package {name}, which is not installed", remedy=f"pip install {name}"
        )
    place = Path(found.origin)
    place = place.parent if found.submodule_search_locations else place
    beside = place.with_name(f"{name}.libs")
    return [str(place), *([str(beside)] if beside.is_dir() else [])]
