"""Parts by name: `module:object`, or a name that an installed package has declared as an entry point.

The module is looked for where Python looks, then in the working directory, then in the folder that a run has recorded
for it (`remember`). Whatever is wrong is told in one line: no such module, an import that fails, no such name.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, TypedDict

from operant.errors import UsageError
from operant.install import missing_package


class Origin(TypedDict):
    """Where the module of an own part was found, the folder that it is imported from, and the hash of its file."""

    module: str
    file: str
    folder: str
    sha256: str


_FOLDERS: dict[str, str] = {}


def load(path: str, wanted_by: str) -> Any:
    """What `module:object` is; `UsageError` where the module cannot be imported or has no such name."""
    module_name, _, attribute = path.partition(":")
    module = import_from_here(module_name, wanted_by)
    if not hasattr(module, attribute):
        near = get_close_matches(
            attribute, [name for name in vars(module) if not name.startswith("_")], n=1, cutoff=0.4
        )
        listing = f'see what it has: python -c "import {module_name}; print(dir({module_name}))"'
        remedy = f"did you mean {near[0]}?" if near else listing
        raise UsageError(f"{wanted_by}: {module_name} has no {attribute}", remedy=remedy)
    return getattr(module, attribute)


def import_from_here(name: str, wanted_by: str) -> ModuleType:
    """The module, which may lie in the working directory; whatever its import raises is told in one line."""
    if "" not in sys.path:
        _search_in(str(Path.cwd()))
    try:
        if name in _FOLDERS and name not in sys.modules and origin(name) is None:
            _search_in(_FOLDERS[name])
        return import_module(name)
    except Exception as problem:
        raise _not_imported(name, wanted_by, problem) from problem


def remember(parts: Iterable[Origin]) -> None:
    """Where a run has found the modules of its own parts: they are looked for there if they are nowhere else."""
    _FOLDERS.update({part["module"]: part["folder"] for part in parts})


def _search_in(folder: str) -> None:
    """Import from this folder too: last, so that a file there never stands in for an installed package."""
    if folder not in sys.path:
        sys.path.append(folder)


def installed(group: str) -> dict[str, str]:
    """Names in an entry-point group of installed packages, each with its `module:object`."""
    return {entry.name: entry.value for entry in entry_points(group=group)}


def origins(data: Any) -> list[Origin]:
    """Where the modules came from that a spec in plain data names and that were imported; none of Operant's own."""
    texts = [text for text in _texts(data) if not text.startswith("operant.")]
    names = dict.fromkeys(text.partition(":")[0] if ":" in text else text.rpartition(".")[0] for text in texts)
    found = (origin(name) for name in names if name in sys.modules)
    return [each for each in found if each is not None]


def changed(before: Iterable[Origin]) -> list[str]:
    """A line for each module whose file is another one, or has another content, than the recorded one."""
    return [line for each in before if (line := _change(each))]


def _change(before: Origin) -> str:
    now = origin(before["module"])
    if now is None:
        _search_in(before["folder"])  # processes that this one starts inherit it
        now = origin(before["module"])
    if now is None or now["sha256"] == before["sha256"]:
        return ""
    place = before["file"] if now["file"] == before["file"] else f"{before['file']} (now {now['file']})"
    return f"{place} has changed since this run recorded it: from here on the results may be others"


def origin(name: str) -> Origin | None:
    """Where a module is imported from; None for one that has no file."""
    try:
        found = find_spec(name)
    except (ImportError, ValueError):
        return None
    file = found.origin if found else None
    if file is None or not Path(file).is_file():
        return None
    path = Path(file).resolve()
    depth = name.count(".") + (path.name == "__init__.py")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Origin(module=name, file=str(path), folder=str(path.parents[depth]), sha256=digest)


def _texts(data: Any) -> Iterator[str]:
    """Every text that stands as a value in plain data."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping | list | tuple):
        for each in data.values() if isinstance(data, Mapping) else data:
            yield from _texts(each)


def _not_imported(module: str, wanted_by: str, problem: Exception) -> UsageError:
    absent = problem.name if isinstance(problem, ModuleNotFoundError) else None
    if absent and f"{module}.".startswith(f"{absent}."):
        return UsageError(
            f"{wanted_by}: there is no module {absent!r}, neither installed nor in {Path.cwd()}",
            remedy=f"run from the folder that holds {absent.partition('.')[0]}, or install its package",
        )
    if absent and module.startswith("operant."):
        return missing_package(absent, wanted_by)
    return UsageError(
        f"{wanted_by}: {module} cannot be imported: {type(problem).__name__}: {problem}",
        remedy=f'see where: python -c "import {module}"',
    )
