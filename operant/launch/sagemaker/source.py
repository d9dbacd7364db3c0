"""The source that a training job runs: one tarball, the same bytes for the same files."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

from operant.launch.sagemaker.request import PROGRAM

_PACKAGE = Path(__file__).resolve().parents[2]
_SKIPPED = ("__pycache__", ".git")
_ENTRY = '''"""Started by SageMaker's training toolkit on every host of the job."""

import os
import sys

# Processes that training starts must find the package as well.
here = os.path.dirname(os.path.abspath(__file__))
os.environ["PYTHONPATH"] = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
sys.path.insert(0, here)

from operant.launch.sagemaker.container import main

sys.exit(main())
'''


def source_tarball(extra: Path | None = None) -> bytes:
    """The package, the program that the toolkit starts, and the files of `extra` (own parts of a spec) beside them."""
    files = {PROGRAM: _ENTRY.encode()}
    files |= {f"{_PACKAGE.name}/{name}": content for name, content in _tree(_PACKAGE).items()}
    if extra is not None:
        files |= _tree(extra)
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(files[name])
            tar.addfile(entry, io.BytesIO(files[name]))
    return packed.getvalue()


def _tree(folder: Path) -> dict[str, bytes]:
    """The files below a folder, without caches."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part in _SKIPPED for part in path.parts)
    }
