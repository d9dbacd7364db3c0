"""The bytes of a rollout's checkpoint: plain facts, and files by their names. Nothing is pickled."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

Files = Mapping[str, bytes]


def encode_files(files: Files | None) -> dict[str, str] | None:
    """Files as text."""
    return None if files is None else {name: b64encode(data).decode() for name, data in files.items()}


def decode_files(texts: Mapping[str, str] | None) -> dict[str, bytes] | None:
    """The files of such texts."""
    return None if texts is None else {name: b64decode(text) for name, text in texts.items()}


def encode_checkpoint(facts: Mapping[str, Any], base: bytes | None) -> bytes:
    """Facts, and the archive of a workspace."""
    return json.dumps({**facts, "has_base": base is not None}).encode() + b"\n" + (base or b"")


def decode_checkpoint(data: bytes) -> tuple[dict[str, Any], bytes | None]:
    """The facts and the archive of a checkpoint."""
    head, _, base = data.partition(b"\n")
    facts = json.loads(head)
    return facts, base if facts.pop("has_base") else None
