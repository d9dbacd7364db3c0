"""Which code ran: a hash of every source file of Operant, and the text of a recorded file where git still has it.

A commit names code only where Operant lies in a repository; the hashes name it everywhere, file by file.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from operant.run.disk import write_text

PACKAGE = Path(__file__).resolve().parents[1]
HASH_DIGITS = 16
GIT_SECONDS = 10


@cache
def source_files() -> dict[str, str]:
    """A hash of each of Operant's Python files by its path in the package; read once a process."""
    return {file.relative_to(PACKAGE).as_posix(): _digest(file.read_bytes()) for file in _python_files()}


def record_source(folder: Path) -> str:
    """Write the hashes into a folder, once for all attempts that run the same code; returns the file's name."""
    text = json.dumps(source_files(), indent=0)
    file = folder / f"source_{_digest(text.encode())[:8]}.json"
    if not file.exists():
        write_text(file, text + "\n")
    return file.name


def recorded_text(files: Mapping[str, str], commits: Iterable[str], patch: Path | None, name: str) -> str | None:
    """The text that a source file of Operant had in an attempt; None where it can no longer be found.

    It is looked for in this installation, then in the repositories of this installation and of the working directory,
    at the recorded commits with the recorded uncommitted changes. Only a text of the recorded hash is given back.
    """
    here = PACKAGE / name
    texts = [here.read_bytes()] if here.is_file() else []
    for sha in commits:
        for folder in (PACKAGE, Path.cwd()):
            texts += _committed(folder, sha, name, patch)
    return next((text.decode("utf-8", "replace") for text in texts if _digest(text) == files.get(name)), None)


def _python_files() -> list[Path]:
    return sorted(file for file in PACKAGE.rglob("*.py") if "__pycache__" not in file.parts)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:HASH_DIGITS]


def _committed(folder: Path, sha: str, name: str, patch: Path | None) -> list[bytes]:
    """The file at a commit of the folder's repository, without and with the recorded patch."""
    path = f"{PACKAGE.name}/{name}"
    text = _git(folder, "show", f"{sha}:{path}")
    if text is None:
        return []
    return [text, *_patched(text, path, patch)] if patch is not None and patch.is_file() else [text]


def _patched(text: bytes, path: str, patch: Path) -> list[bytes]:
    with tempfile.TemporaryDirectory(prefix="operant-source-") as place:
        file = Path(place) / path
        file.parent.mkdir(parents=True)
        file.write_bytes(text)
        applied = _git(Path(place), "apply", f"--include={path}", str(patch.resolve()))
        return [] if applied is None else [file.read_bytes()]


def _git(folder: Path, *words: str) -> bytes | None:
    """What git prints, or None where there is no git, no repository or no such thing in it."""
    command = ["git", "--no-optional-locks", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, timeout=GIT_SECONDS, check=True, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
