"""Manifests: which files a stored run has, and the parts, named by their SHA-256, that each of them is made of.

    <name>/<stamp>/manifest.json                       the experiment's own files
    <name>/<stamp>/trial_000/session_0/manifest.json   those of one session
    <name>/<stamp>/objects/<sha256>                    a part of a file, never changed once it is there

A manifest is written when every part that it names is there, so who reads one can have all of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from operant.errors import RunError
from operant.run.layout import CHECKPOINTS_FOLDER, timestamp

FORMAT = 1
MANIFEST = "manifest.json"
OBJECTS = "objects"
PART_BYTES = 1 << 24
SMALLEST_PART = 1 << 16


@dataclass(frozen=True)
class Part:
    """A piece of a file, stored under the hash of its content."""

    sha256: str
    size: int


@dataclass(frozen=True)
class Entry:
    """A file: its hash as a whole, and its parts in order."""

    size: int
    sha256: str
    parts: tuple[Part, ...]

    def as_dict(self) -> dict[str, Any]:
        """As it is stored; a file of one part need not name it."""
        whole = {"size": self.size, "sha256": self.sha256}
        return whole if len(self.parts) == 1 else {**whole, "parts": [[part.sha256, part.size] for part in self.parts]}

    @classmethod
    def of_dict(cls, stored: Mapping[str, Any]) -> Entry:
        """The entry that was stored so."""
        size, sha256 = int(stored["size"]), str(stored["sha256"])
        parts = stored.get("parts", [[sha256, size]])
        return cls(size, sha256, tuple(Part(str(name), int(length)) for name, length in parts))


@dataclass(frozen=True)
class Manifest:
    """The files of one experiment or session by relative path; `facts` are for listings (state, frames, score)."""

    kind: str
    files: dict[str, Entry]
    facts: dict[str, Any] = field(default_factory=dict)
    updated: str = field(default_factory=timestamp)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.files.values())

    def parts(self) -> set[Part]:
        """Every part that some file needs."""
        return {part for entry in self.files.values() for part in entry.parts}

    def encode(self) -> bytes:
        """As it is stored, with a hash of its own."""
        content = {
            "format": FORMAT,
            "kind": self.kind,
            "updated": self.updated,
            "facts": self.facts,
            "files": {path: entry.as_dict() for path, entry in sorted(self.files.items())},
        }
        return json.dumps({**content, "sha256": _digest(content)}, indent=1).encode() + b"\n"


def decode(data: bytes, place: str) -> Manifest:
    """The manifest that was stored as `data`; `RunError` naming `place` where it is damaged or too new."""
    try:
        content = json.loads(data)
        proof = content.pop("sha256")
        if content["format"] > FORMAT:
            raise RunError("this was stored by a newer Operant", place=place, remedy="bring Operant up to date")
        if proof != _digest(content):
            raise ValueError
        files = {_safe(path): Entry.of_dict(stored) for path, stored in content["files"].items()}
        return Manifest(content["kind"], files, content["facts"], content["updated"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise RunError(
            "the manifest is damaged", place=place, remedy="push the run again from a machine that has it"
        ) from None


def cuts(size: int, growing: bool) -> list[int]:
    """The sizes of the parts of a file.

    A file that grows is cut into ever smaller powers of two, so that it shares nearly all parts with its earlier,
    shorter self: a byte is sent a few times at most, whatever the number of uploads.
    """
    whole, rest = divmod(size, PART_BYTES)
    sizes = [PART_BYTES] * whole
    while growing and rest >= SMALLEST_PART:
        part = 1 << (rest.bit_length() - 1)
        sizes.append(part)
        rest -= part
    return [*sizes, rest] if rest or not sizes else sizes


def checkpoint_frames(paths: Iterable[str]) -> set[int]:
    """The frames of the checkpoints that are among these files of a session."""
    return {int(path.split("/")[1]) for path in paths if in_checkpoint(path)}


def in_checkpoint(path: str) -> bool:
    """Whether a session's file belongs to a published checkpoint."""
    folder, _, rest = path.partition("/")
    return folder == CHECKPOINTS_FOLDER and rest.partition("/")[0].isdigit()


def checkpoint_of(path: str) -> str:
    """The folder of the checkpoint that a session's file belongs to."""
    return "/".join(path.split("/")[:2])


def _safe(path: str) -> str:
    """A path that stays inside the run directory; what is stored may come from anybody."""
    if path.startswith("/") or "\\" in path or any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError(path)
    return path


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
