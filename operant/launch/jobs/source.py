"""The source that a job runs elsewhere: one tarball, the same bytes for the same files."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from operant.install import CLONE, is_clone
from operant.registry import Origin

SOURCE_FILE = "source.tar.gz"
_PACKAGE = Path(__file__).resolve().parents[2]
# What a clone has beside the package and an installation needs.
_PROJECT = ("pyproject.toml", "README.md", "LICENSE", "scripts/uv", "operant_tasks")
_SKIPPED = ("__pycache__", ".git")


def source_tarball(parts: Sequence[Origin] = (), programs: Mapping[str, str] | None = None) -> bytes:
    """The package, the modules of a spec's own parts, and the texts of `programs`, all side by side.

    From a clone it can be installed, as it brings the project's files. An own part that is installed as a package is
    left out: whatever installs Operant there has to install it too.
    """
    files = {name: text.encode() for name, text in (programs or {}).items()}
    for part in parts:
        if not {"site-packages", "dist-packages"} & set(Path(part["folder"]).parts):
            files |= _module(part)
    for name in _PROJECT if is_clone() else ():
        files |= _tree(CLONE / name, name)
    return _packed(files | _tree(_PACKAGE, _PACKAGE.name))


def _module(part: Origin) -> dict[str, bytes]:
    """The file of a module, or of a package that it is in all files."""
    top = part["module"].partition(".")[0]
    folder = Path(part["folder"])
    return _tree(folder / top, top) if (folder / top).is_dir() else _tree(folder / f"{top}.py", f"{top}.py")


def _tree(path: Path, name: str) -> dict[str, bytes]:
    """A file by its name, or the files below a folder, without caches."""
    if path.is_file():
        return {name: path.read_bytes()}
    return {
        f"{name}/{each.relative_to(path)}": each.read_bytes()
        for each in path.rglob("*")
        if each.is_file() and not any(part in _SKIPPED for part in each.parts)
    }


def _packed(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    zipping = gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6, mtime=0)
    with zipping as zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(files[name]), 0o755 if files[name].startswith(b"#!") else 0o644
            tar.addfile(entry, io.BytesIO(files[name]))
    return packed.getvalue()
