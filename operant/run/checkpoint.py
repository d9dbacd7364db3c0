"""Checkpoints: folders that appear whole or not at all, with a manifest that proves their content.

A checkpoint is written to a temporary folder, forced to disk, hashed into its manifest and renamed.
Old ones go only after the new one is in place. Readers never change anything here.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.errors import RunError
from operant.run.disk import disk_full, fsync_path, is_full, is_nearly_full, write_json
from operant.run.layout import (
    BEST_LINK,
    CORRUPT_SUFFIX,
    FORMAT,
    HELD_FILE,
    LATEST_LINK,
    LEFTOVER_PREFIX,
    MANIFEST_FILE,
    REPLACED_PREFIX,
    checkpoint_path,
    checkpoint_paths,
    shown,
)
from operant.run.progress import Progress

NO_SYMLINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP)


class CorruptCheckpoint(RunError):
    """A checkpoint is not what its manifest says; `place` names the file."""


@dataclass(frozen=True)
class Checkpoint:
    """A published checkpoint: where it is, when it was taken, and what proves it.

    `files` maps each file to its SHA-256; `offsets` says how long each log was at that moment.
    """

    path: Path
    at: Progress
    score: float | None
    files: dict[str, str]
    offsets: dict[str, int]


def publish(
    checkpoints: Path,
    at: Progress,
    write: Callable[[Path], object],
    score: float | None = None,
    offsets: Mapping[str, int] | None = None,
) -> Checkpoint:
    """Let `write` fill a folder, then make it the checkpoint of `at`.

    Whenever this is cut short, the checkpoints published before are untouched. A full disk raises
    `DiskFull` and leaves nothing behind.
    """
    target = checkpoint_path(checkpoints, at.frames)
    temporary = checkpoints / f"{LEFTOVER_PREFIX}{target.name}"
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        write(temporary)
        if (temporary / MANIFEST_FILE).exists():
            raise ValueError(f"{MANIFEST_FILE} is the manifest's own name; call the engine's file otherwise")
        files = _hash_files(temporary)
        _write_manifest(temporary, at, score, files, offsets or {})
        _put_in_place(temporary, target)
    except Exception as error:
        # Asked before the clean-up below makes room again.
        full = disk_full(target, checkpoints.parent) if is_full(error) or is_nearly_full(checkpoints) else None
        shutil.rmtree(temporary, ignore_errors=True)
        if full is None:
            raise
        raise full from error
    return read_manifest(target)


def read_manifest(path: Path) -> Checkpoint:
    """The checkpoint as its manifest describes it; its files are not read."""
    place = path / MANIFEST_FILE
    try:
        manifest = json.loads(place.read_bytes())
        proof = manifest.pop("sha256")
        found = Checkpoint(
            path=path,
            at=Progress.from_dict(manifest["at"]),
            score=manifest["score"],
            files=dict(manifest["files"]),
            offsets=dict(manifest["offsets"]),
        )
    except FileNotFoundError:
        raise _corrupt(place, "the manifest is missing") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise _corrupt(place, "the manifest cannot be read") from None
    if proof != _digest(manifest):
        raise _corrupt(place, "the manifest was changed after it was written")
    return found


def verify(path: Path) -> Checkpoint:
    """Read every byte of a checkpoint; raises `CorruptCheckpoint` naming the first file that is wrong."""
    found = read_manifest(path)
    for name, expected in found.files.items():
        try:
            actual = _hash_file(path / name)
        except FileNotFoundError:
            raise _corrupt(path / name, "the file is missing") from None
        except OSError as error:
            raise _corrupt(path / name, f"the file cannot be read ({error.strerror})") from error
        if actual != expected:
            raise _corrupt(path / name, "the content differs from what was saved")
    return found


def list_checkpoints(checkpoints: Path) -> list[Checkpoint]:
    """The checkpoints with a readable manifest, newest last; their files are not read."""
    found = []
    for path in checkpoint_paths(checkpoints):
        try:
            found.append(read_manifest(path))
        except CorruptCheckpoint:
            continue
    return found


def newest_good(checkpoints: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint that verifies, and what is wrong with each newer one."""
    problems: list[str] = []
    for path in reversed(checkpoint_paths(checkpoints)):
        try:
            return verify(path), problems
        except CorruptCheckpoint as problem:
            problems.append(f"{problem.place}: {problem.cause}")
    return None, problems


def best(checkpoints: Path) -> Checkpoint | None:
    """The checkpoint with the highest score, the later of equals; None while none has a score."""
    scored = [found for found in list_checkpoints(checkpoints) if found.score is not None]
    return max(reversed(scored), key=lambda found: found.score or 0.0, default=None)


def prune(checkpoints: Path, keep: int) -> None:
    """Remove all but the newest `keep` checkpoints, the best one and those that are held."""
    top = best(checkpoints)
    for path in checkpoint_paths(checkpoints)[:-keep]:
        if (top is None or path != top.path) and not (path / HELD_FILE).exists():
            # Renamed first, so that a kill half-way leaves a leftover and not a checkpoint with files missing.
            doomed = checkpoints / f"{LEFTOVER_PREFIX}pruned-{path.name}"
            shutil.rmtree(doomed, ignore_errors=True)
            os.rename(path, doomed)
            shutil.rmtree(doomed, ignore_errors=True)


def hold(checkpoint: Checkpoint) -> None:
    """Keep a checkpoint from being pruned, for a fork that may begin later; removing the mark lets go of it."""
    (checkpoint.path / HELD_FILE).touch()
    fsync_path(checkpoint.path)


def link_newest_and_best(checkpoints: Path) -> None:
    """Point `latest` and `best` at the right folders; they are for people, Operant itself never follows them."""
    newest = checkpoint_paths(checkpoints)
    top = best(checkpoints)
    _link(checkpoints / LATEST_LINK, newest[-1].name if newest else None)
    _link(checkpoints / BEST_LINK, top.path.name if top else None)


def remove_leftovers(checkpoints: Path) -> None:
    """Clear what killed saves left behind. Only the holder of the run's lock may call this."""
    for leftover in _entries(checkpoints, REPLACED_PREFIX):
        target = checkpoints / leftover.name.removeprefix(REPLACED_PREFIX)
        if not target.exists():
            os.rename(leftover, target)
    for leftover in _entries(checkpoints, REPLACED_PREFIX) + _entries(checkpoints, LEFTOVER_PREFIX):
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def set_aside(path: Path) -> Path:
    """Rename a corrupt checkpoint so that it is never used again and never deleted either."""
    aside = path.with_name(path.name + CORRUPT_SUFFIX)
    number = 2
    while aside.exists():
        aside = path.with_name(f"{path.name}{CORRUPT_SUFFIX}-{number}")
        number += 1
    os.rename(path, aside)
    fsync_path(path.parent)
    return aside


def adopt(source: Checkpoint, checkpoints: Path) -> Checkpoint:
    """Make a verified copy of another run's checkpoint the first one of a fork, whose logs start empty."""

    def copy(folder: Path) -> None:
        for name in verify(source.path).files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.path / name, folder / name)

    return publish(checkpoints, source.at, copy)


def _hash_files(folder: Path) -> dict[str, str]:
    """Force every file and folder below to disk and return the files' hashes by relative name."""
    files: dict[str, str] = {}
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            fsync_path(path)
            files[path.relative_to(folder).as_posix()] = _hash_file(path)
        fsync_path(Path(parent))
    return files


def _hash_file(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_manifest(
    folder: Path, at: Progress, score: float | None, files: dict[str, str], offsets: Mapping[str, int]
) -> None:
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "at": at.as_dict(),
        "score": _number(score),
        "offsets": dict(offsets),
        "files": files,
    }
    write_json(folder / MANIFEST_FILE, {**manifest, "sha256": _digest(manifest)})


def _number(score: float | None) -> float | None:
    """A score that can be compared: a plain finite float, or None."""
    value = None if score is None else float(score)
    return value if value is not None and math.isfinite(value) else None


def _digest(manifest: Mapping[str, Any]) -> str:
    canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _put_in_place(temporary: Path, target: Path) -> None:
    """Rename into place; a checkpoint of the same frames steps aside and `remove_leftovers` can bring it back."""
    replaced = target.with_name(REPLACED_PREFIX + target.name)
    if target.exists():
        shutil.rmtree(replaced, ignore_errors=True)
        os.rename(target, replaced)
    os.rename(temporary, target)
    fsync_path(target.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def _link(link: Path, target: str | None) -> None:
    """Replace a symbolic link atomically; a file system without links simply has none."""
    if target is None:
        link.unlink(missing_ok=True)
        return
    temporary = link.with_name(LEFTOVER_PREFIX + link.name)
    temporary.unlink(missing_ok=True)
    try:
        os.symlink(target, temporary)
        os.replace(temporary, link)
    except OSError as error:
        if error.errno not in NO_SYMLINKS:
            raise


def _entries(folder: Path, prefix: str) -> list[Path]:
    return sorted(folder.glob(f"{prefix}*"))


def _corrupt(place: Path, cause: str) -> CorruptCheckpoint:
    return CorruptCheckpoint(
        cause,
        place=shown(place),
        remedy="resume the run: `operant resume RUN` sets this checkpoint aside and uses the newest good one",
    )
