"""Output of the command line: one JSON document or text for people, and numbers with units."""

from __future__ import annotations

import json
import sys
from typing import Any


def document(content: Any) -> None:
    """Print the one JSON document of a `--json` command."""
    print(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False, default=str))


def say(*lines: str) -> None:
    """Print human text at once, so that the first words come before the slow imports."""
    print(*lines, sep="\n", flush=True)


def aside(*lines: str) -> None:
    """Print what is not the answer itself (progress, warnings), so that stdout stays clean."""
    print(*lines, sep="\n", file=sys.stderr, flush=True)


def size(n_bytes: float) -> str:
    """812 B, 3.1 MB, 20 GB"""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "B" or n_bytes >= 10 else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} TB"


def plural(number: int, noun: str) -> str:
    """1 session, 4 sessions"""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
