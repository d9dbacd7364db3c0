"""Pulling an experiment: fetched and verified beside its place, then put there as a whole.

An interrupted pull leaves a hidden folder, which the next one continues.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.errors import UsageError
from operant.run.checkpoint import link_newest_and_best
from operant.run.disk import disk_guard, fsync_path
from operant.run.layout import (
    CHECKPOINTS_FOLDER,
    LEFTOVER_PREFIX,
    LOCK_FILE,
    REPLACED_PREFIX,
    shown,
)
from operant.run.lock import RunLock
from operant.store.backend import Report, Store, StoreError
from operant.store.compare import Comparison, compare
from operant.store.listing import StoredExperiment, read_experiment
from operant.store.manifest import OBJECTS, Entry, checkpoint_of, in_checkpoint
from operant.store.snapshot import unit_paths
from operant.store.transfer import remember

THREADS = 4
READINGS = 3


@dataclass(frozen=True)
class Pulled:
    """Where a run is now, and what was done: "pulled", "updated", "up to date", or "ahead" where it is newer here."""

    path: Path
    source: str
    state: str
    files: int = 0
    bytes: int = 0
    set_aside: Path | None = None

    def as_dict(self) -> dict[str, Any]:
        """The same for `--json`."""
        aside = None if self.set_aside is None else shown(self.set_aside)
        return {**self.__dict__, "path": shown(self.path), "set_aside": aside}


class DamagedObject(StoreError):
    """An object is missing, or is not what it is named by."""


class Downloader:
    """Pulls one experiment to `target` (final).

    `accept_loss` leaves out checkpoints of which an object is damaged. `delete` leaves out local files that are not
    stored. Nothing local is replaced that is newer or different, unless `force` sets it aside.
    """

    def __init__(
        self,
        store: Store,
        key: str,
        target: Path,
        *,
        force: bool = False,
        delete: bool = False,
        accept_loss: bool = False,
        report: Report = lambda line: None,
    ) -> None:
        self.target = target.absolute()
        self._store = store
        self._key = key
        self._force = force
        self._delete = delete
        self._accept_loss = accept_loss
        self._report = report
        self._staging = self.target.with_name(f"{LEFTOVER_PREFIX}pull-{self.target.name}")
        self._files = self._bytes = 0
        self._lost: set[Path] = set()

    def pull(self) -> Pulled:
        """Bring the run here; `UsageError` saying what differs where that would replace something of one's own."""
        source = self._store.place(self._key)
        for reading in range(1, READINGS + 1):
            stored = read_experiment(self._store, self._key)
            difference = self._compare(stored)
            if difference is not None and difference.is_same:
                return Pulled(self.target, source, "up to date")
            if difference is not None and not self._force:
                if difference.is_ahead:
                    return Pulled(self.target, source, "ahead")
                difference.refuse_conflicts(self.target, source)
            try:
                with disk_guard(self._staging, self.target):
                    self._fetch_all(stored)
                break
            except DamagedObject:
                # A push with --delete may have taken away what the manifest named; then there is a new manifest.
                if reading == READINGS or read_experiment(self._store, self._key).units == stored.units:
                    raise
        aside = self._put_in_place(stored)
        state = "pulled" if difference is None else "updated"
        return Pulled(self.target, source, state, self._files, self._bytes, aside)

    def _compare(self, stored: StoredExperiment) -> Comparison | None:
        """How the run here differs from the stored one; None where there is nothing here."""
        if not self.target.exists() or (self.target.is_dir() and not any(self.target.iterdir())):
            return None
        if not self.target.is_dir() or not unit_paths(self.target):
            raise UsageError(
                "something else is in the way, and nothing is ever overwritten",
                place=shown(self.target),
                remedy="--out names another directory",
            )
        return compare(self.target, stored)

    def _fetch_all(self, stored: StoredExperiment) -> None:
        damaged: list[DamagedObject] = []
        with ThreadPoolExecutor(THREADS) as pool:
            jobs = [
                (unit, path, pool.submit(self._fetch, unit, path, entry))
                for unit, manifest in stored.units.items()
                for path, entry in manifest.files.items()
            ]
            for unit, path, job in jobs:
                try:
                    job.result()
                except DamagedObject as problem:
                    if not (self._accept_loss and in_checkpoint(path)):
                        damaged.append(problem)
                        continue
                    self._report(f"left out, because it is damaged: the checkpoint of {unit}/{path}")
                    self._lost.add(self._staging / unit / checkpoint_of(path))
        if damaged:
            raise damaged[0]

    def _fetch(self, unit: str, path: str, entry: Entry) -> None:
        """One file, from the run here where that has the same, else from the store."""
        staged = self._staging / unit / path
        staged.parent.mkdir(parents=True, exist_ok=True)
        if _has(staged, entry):
            return
        if _has(self.target / unit / path, entry):
            shutil.copyfile(self.target / unit / path, staged)
        elif self._store.plain:
            self._fetch_whole(unit, path, entry, staged)
        else:
            self._fetch_parts(unit, path, entry, staged)
        fsync_path(staged)

    def _fetch_whole(self, unit: str, path: str, entry: Entry, staged: Path) -> None:
        key = "/".join(part for part in (self._key, unit, path) if part)
        if not self._store.copy_to(key, staged) or not _has(staged, entry):
            staged.unlink(missing_ok=True)
            raise self._damaged(unit, path, key)
        self._bytes += entry.size
        self._files += 1

    def _fetch_parts(self, unit: str, path: str, entry: Entry, staged: Path) -> None:
        """Part by part; those that an interrupted pull has left are used if their hash is right."""
        with open(staged, "r+b" if staged.exists() else "w+b") as file:
            for part in entry.parts:
                start = file.tell()
                if hashlib.sha256(file.read(part.size)).hexdigest() == part.sha256:
                    continue
                key = "/".join(each for each in (self._key, OBJECTS, part.sha256) if each)
                data = self._store.read(key)
                if data is None or hashlib.sha256(data).hexdigest() != part.sha256:
                    raise self._damaged(unit, path, key, is_missing=data is None)
                file.seek(start)
                file.write(data)
                self._bytes += part.size
            file.truncate(entry.size)
        self._files += 1

    def _damaged(self, unit: str, path: str, key: str, is_missing: bool = False) -> DamagedObject:
        name = "/".join(part for part in (unit, path) if part)
        way_out = "; or --accept-loss, to pull without this checkpoint" if in_checkpoint(path) else ""
        fault = "is missing" if is_missing else "is damaged: it has not the content that it was sent with"
        return DamagedObject(
            f"this object, of {name}, {fault}",
            place=self._store.place(key),
            remedy=f"push the run again with --force from a machine that has it{way_out}",
        )

    def _put_in_place(self, stored: StoredExperiment) -> Path | None:
        """Swap the fetched run in; returns where the one that was here went, if it was set aside."""
        for folder in self._lost:
            shutil.rmtree(folder)
        for unit, manifest in stored.units.items():
            self._remove_strays(unit, set(manifest.files))
            if (self._staging / unit / CHECKPOINTS_FOLDER).is_dir():
                link_newest_and_best(self._staging / unit / CHECKPOINTS_FOLDER)
            remember(self._staging, self._store.url, unit, manifest)
        if not self.target.exists():
            os.rename(self._staging, self.target)
            fsync_path(self.target.parent)
            return None
        with ExitStack() as stack:
            for unit in unit_paths(self.target):
                lock = RunLock(self.target / unit / LOCK_FILE)
                lock.acquire()
                stack.callback(lock.release)
            return self._swap()

    def _swap(self) -> Path | None:
        aside = _free_name(self.target)
        if not self._force and not self._delete:
            self._carry_over()
        os.rename(self.target, aside)
        os.rename(self._staging, self.target)
        fsync_path(self.target.parent)
        if self._force:
            return aside
        # All of it is in the new one, unless the user said that it may go.
        shutil.rmtree(aside, ignore_errors=True)
        return None

    def _carry_over(self) -> None:
        """What is only here comes along."""
        for folder, _, names in os.walk(self.target):
            for name in names:
                file = Path(folder, name)
                staged = self._staging / file.relative_to(self.target)
                if not file.is_symlink() and not staged.exists() and name != LOCK_FILE:
                    staged.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, staged)

    def _remove_strays(self, unit: str, known: set[str]) -> None:
        """An interrupted pull may have fetched what a later manifest does not have."""
        folder = self._staging / unit
        for file in list(folder.rglob("*")):
            path = file.relative_to(folder).as_posix()
            inside = not unit and path.startswith("trial_") and "/session_" in path
            if file.is_file() and not inside and path not in known:
                with suppress(FileNotFoundError):
                    file.unlink()


def _has(file: Path, entry: Entry) -> bool:
    """Whether a file is there with that content."""
    try:
        if file.stat().st_size != entry.size:
            return False
        with open(file, "rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == entry.sha256
    except OSError:
        return False


def _free_name(target: Path) -> Path:
    """A hidden name beside the target that nothing has."""
    name, number = target.with_name(f"{REPLACED_PREFIX}{target.name}"), 1
    while name.exists():
        number += 1
        name = target.with_name(f"{REPLACED_PREFIX}{target.name}-{number}")
    return name
