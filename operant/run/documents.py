"""The JSON documents at the top of run folders: creating them, reading them, and what to say when they are wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from operant.errors import RunError, UsageError
from operant.run.disk import create_folder, disk_guard
from operant.run.layout import EXPERIMENT_FILE, FORMAT, RUN_FILE, shown


class UsedDirectory(UsageError):
    """The place for something new is taken."""


def create_documents(folder: Path, files: Mapping[str, str]) -> None:
    """Make a folder with these files, all at once; `UsedDirectory` with the ways out if it holds anything already."""
    try:
        with disk_guard(folder, folder):
            create_folder(folder, files)
    except FileExistsError:
        raise _used(folder) from None
    except OSError as error:
        # Permission denied, a read-only disk, a file in the way, a place like /proc: all are the user's to change.
        raise UsageError(
            f"nothing can be written there: {error.strerror or error}",
            place=shown(folder),
            remedy="choose another directory",
        ) from None


def json_text(document: Mapping[str, Any]) -> str:
    """A document as it is stored: readable, and strict JSON."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def read_document(folder: Path, name: str) -> dict[str, Any]:
    """The document of that name; `UsageError` if it is not there, `RunError` if it was damaged."""
    file = folder / name
    try:
        document = json.loads(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise no_run(folder, f"it has no {name}" if folder.is_dir() else "there is no such directory") from None
    except (OSError, ValueError) as error:
        raise damaged(file, str(error)) from None
    if not isinstance(document, dict):
        raise damaged(file, "it is not a JSON object")
    if document.get("format", FORMAT) > FORMAT:
        raise UsageError(
            "this was written by a newer Operant",
            place=shown(file),
            remedy="bring this installation of Operant up to date",
        )
    return document


def no_run(folder: Path, lacks: str) -> UsageError:
    """The error for a folder that is not what it was taken for."""
    return UsageError(
        f"this is not a run directory: {lacks}", place=shown(folder), remedy="`operant runs` lists them all"
    )


def damaged(file: Path, why: str) -> RunError:
    """The error for a document that Operant cannot have written so."""
    return RunError(
        f"the file was damaged by something other than Operant: {why}",
        place=shown(file),
        remedy="restore it from a copy, or start a new run",
    )


def _used(folder: Path) -> UsedDirectory:
    place = shown(folder)
    is_run = (folder / RUN_FILE).exists() or (folder / EXPERIMENT_FILE).exists()
    return UsedDirectory(
        f"the directory {'holds a run' if is_run else 'is used'} already, and nothing is ever overwritten",
        place=place,
        remedy=f"`operant resume {place}` to continue it, or choose another name or directory, or `rm -r {place}`",
    )
