"""Data that is made, such as by a checkout's own helper: once, in a sandbox, and kept in the cache."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path

from operant.envs.research.mlgym.checkout import files_below, imported_modules
from operant.envs.research.packages import installed, packages
from operant.envs.sandbox import Limits, Sandbox, open_sandbox
from operant.errors import UsageError
from operant.install import install_module
from operant.store.cache import cache_folder

SECONDS = 600.0
MOST = 1 << 30
LIST = "cd -- \"$1\" && find . -type f ! -name '*\n*' | sed 's,^./,,'"
RUN = 'mkdir -p -- "$1" && cd _helpers && for file in *.py; do python3 -B -c "$2" "$file" || exit 1; done'
# Runs a helper as it ran with the pandas that it was written for, which did not mind an axis beside the columns.
OLD_PANDAS = """
import runpy, sys
try:
    import pandas
    drop = pandas.DataFrame.drop
    pandas.DataFrame.drop = lambda self, *args, columns=None, **kwargs: (
        drop(self, *args, **kwargs) if columns is None else drop(self, columns=columns)
    )
except ImportError:
    pass
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def kept(what: str, parts: Mapping[str, bytes], make: Callable[[], dict[str, bytes]]) -> dict[str, bytes]:
    """What `make` makes of `parts`; kept by their content, so that it is made once on this machine."""
    digest = blake2b(what.encode(), digest_size=16)
    for name, data in sorted(parts.items()):
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    place = cache_folder("mlgym") / digest.hexdigest()
    if not place.is_dir():
        _put(place, make())
    return {name: path.read_bytes() for name, path in files_below(place).items()}


def made_by_helpers(helpers: Path, folder: str) -> dict[str, bytes]:
    """The files that the programs of a `_helpers` folder leave in the folder beside it."""
    parts = {name: path.read_bytes() for name, path in files_below(helpers).items()}
    return kept(f"helpers/{folder}", parts, lambda: _run_helpers(helpers, parts, folder))


def _run_helpers(helpers: Path, parts: Mapping[str, bytes], folder: str) -> dict[str, bytes]:
    names = {
        module.partition(".")[0] for name, text in parts.items() if name.endswith(".py") for module in _wanted(text)
    }
    for name in sorted(names):
        if not installed(name):
            raise UsageError(
                f"it imports {name}, which is not installed", place=str(helpers), remedy=install_module(name)
            )
    shown = packages(tuple(sorted(names)))
    limits = Limits(cpu_seconds=int(SECONDS), memory=8 << 30, disk=MOST, file_size=MOST, processes=64)
    files = {f"_helpers/{name}": data for name, data in parts.items()}
    with open_sandbox("auto", limits, files, readable=shown.folders) as sandbox:
        ran = sandbox.run(["sh", "-c", RUN, "sh", folder, OLD_PANDAS], seconds=SECONDS, environment=shown.environment)
        if ran.code or ran.killed:
            why = ran.killed or ran.err.decode(errors="replace").strip().rpartition("\n")[2]
            raise UsageError(f"it failed to make the data: {why}", place=str(helpers))
        return fetched(sandbox, folder, MOST)


def fetched(sandbox: Sandbox, folder: str, most: int) -> dict[str, bytes]:
    """The plain files of a folder of a sandbox by their paths in it, of so many bytes in all."""
    listed = sandbox.run(["sh", "-c", LIST, "sh", folder], seconds=30).out.decode(errors="replace").splitlines()
    found: dict[str, bytes] = {}
    for name in listed:
        found[name] = sandbox.fetch(f"{folder}/{name}", most - sum(map(len, found.values())))
    return found


def _wanted(source: bytes) -> set[str]:
    return {name for name in imported_modules(source) if name.partition(".")[0] not in sys.stdlib_module_names}


def _put(place: Path, files: Mapping[str, bytes]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as temporary:
        for name, data in files.items():
            target = Path(temporary, "new", name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        if not place.is_dir():
            shutil.move(Path(temporary, "new"), place)
