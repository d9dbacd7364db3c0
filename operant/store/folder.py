"""A store in a folder of this machine, or of a disk that several share."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from operant.run.disk import fsync_path
from operant.run.layout import LEFTOVER_PREFIX
from operant.store.backend import StoreError


class FolderBackend:
    """Objects as files; each appears by a rename (final)."""

    plain = False

    def __init__(self, folder: Path) -> None:
        self.url = str(folder)
        self._folder = folder

    def read(self, key: str) -> bytes | None:
        """The object, or None where there is none."""
        try:
            return (self._folder / key).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as problem:
            raise self._refused(key, problem) from problem

    def write(self, key: str, data: bytes) -> None:
        """Put an object, over an earlier one."""
        target = self._folder / key
        # Several processes may store the same part at once.
        temporary = target.with_name(f"{LEFTOVER_PREFIX}{target.name}-{os.getpid()}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(data)
            fsync_path(temporary)
            os.replace(temporary, target)
            fsync_path(target.parent)
        except OSError as problem:
            with suppress(OSError):
                temporary.unlink()
            raise self._refused(key, problem) from problem

    def sizes(self, folder: str) -> dict[str, int]:
        """The objects below a folder, by their name in it, with their sizes."""
        base = self._folder / folder
        files = [file for file in base.rglob("*") if not file.name.startswith(LEFTOVER_PREFIX) and file.is_file()]
        return {file.relative_to(base).as_posix(): file.stat().st_size for file in files}

    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder."""
        base = self._folder / folder
        try:
            return sorted(entry.name for entry in os.scandir(base) if entry.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as problem:
            raise self._refused(folder, problem) from problem

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; those that are not there are no error."""
        for key in keys:
            try:
                (self._folder / key).unlink(missing_ok=True)
            except OSError as problem:
                raise self._refused(key, problem) from problem

    def copy_to(self, key: str, target: Path) -> bool:
        """Not of this store: its files are made of parts."""
        raise NotImplementedError

    def commit(self, files: Mapping[str, Path | bytes], doomed: Sequence[str], message: str) -> None:
        """Not of this store: its manifests publish."""
        raise NotImplementedError

    def _refused(self, key: str, problem: OSError) -> StoreError:
        return StoreError(
            f"the folder cannot be used: {problem.strerror or problem}",
            place=str(self._folder / key),
            remedy="make room or change its permissions, or choose another folder",
        )
