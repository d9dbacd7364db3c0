"""Durable writes: a file or folder is either the old one or the whole new one, whatever is killed when.

Also what to say when the disk is full, which is the one failure every write shares.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from operant.errors import RunError
from operant.run.layout import LEFTOVER_PREFIX, shown

FULL = (errno.ENOSPC, errno.EDQUOT)
NEARLY_FULL_BYTES = 1 << 20


class DiskFull(RunError):
    """There is no room left to write; what was published before is still good."""


def fsync_path(path: Path) -> None:
    """Force a file or a folder's entries to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a folder; they keep its entries in their own time.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Replace a file atomically and durably."""
    temporary = path.with_name(f"{LEFTOVER_PREFIX}{path.name}")
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    fsync_path(path.parent)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a JSON state file atomically and durably."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def create_folder(path: Path, files: Mapping[str, str]) -> None:
    """Make a folder that appears with all its files at once; FileExistsError if it holds anything already.

    A folder that exists and is empty is filled in place (it may be a mount point, which cannot be
    renamed over); the last of `files` then says that it is whole.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path.parent)) from error
    if path.is_dir() and not os.listdir(path):
        for name, text in files.items():
            write_text(path / name, text)
        return
    temporary = path.with_name(f"{LEFTOVER_PREFIX}{path.name}-{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        for name, text in files.items():
            write_text(temporary / name, text)
        _rename_new(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    fsync_path(path.parent)


def _rename_new(source: Path, target: Path) -> None:
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise FileExistsError(errno.EEXIST, "already used", str(target)) from error
        raise


def is_full(error: BaseException) -> bool:
    """Whether an error says that the disk, or the user's share of it, is full."""
    return isinstance(error, OSError) and error.errno in FULL


def is_nearly_full(place: Path) -> bool:
    """Whether the disk has so little room that a failure to write is most likely due to it.

    Writers of other libraries report a full disk in their own words, without an error number.
    """
    free = _free_bytes(place)
    return free is not None and free < NEARLY_FULL_BYTES


def disk_full(place: Path, run: Path) -> DiskFull:
    """The error to show: `place` could not be written, so `run` cannot go on."""
    free = _free_bytes(place)
    room = "free space unknown" if free is None else f"{free:,} bytes free"
    return DiskFull(
        f"the disk is full ({room}); what was saved before is still good",
        place=shown(place),
        remedy=f"free some space, then `operant resume {shown(run)}`",
    )


@contextmanager
def disk_guard(place: Path, run: Path) -> Iterator[None]:
    """Turns a full disk, met while writing `place`, into a `DiskFull`."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        raise disk_full(place, run) from error


def _free_bytes(place: Path) -> int | None:
    """Free bytes of the file system that holds `place`, or would hold it."""
    for folder in (place, *place.absolute().parents):
        try:
            return shutil.disk_usage(folder).free
        except OSError:
            continue
    return None
