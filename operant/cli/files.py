"""Files that a command writes where the user says."""

from __future__ import annotations

from pathlib import Path

from operant.errors import UsageError


def write_new(path: Path, text: str, instead: str) -> None:
    """Write a file that does not exist yet; `instead` is a command that shows the text without a file."""
    from operant.run.layout import shown

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(
            "the file exists already, and nothing is ever overwritten",
            place=shown(path),
            remedy=f"another name, or remove it first: rm {shown(path)}",
        ) from None
    except OSError as fault:
        raise UsageError(f"the file cannot be written: {fault.strerror}", place=shown(path), remedy=instead) from None
