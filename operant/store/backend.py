"""What a store must be able to do, and the retries that all of them share.

Keys are relative to the URL. A write is whole or not at all.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from operant.errors import RunError

Result = TypeVar("Result")
Report = Callable[[str], None]

ATTEMPTS = 8
FIRST_ATTEMPTS = 3
FIRST_DELAY, LONGEST_DELAY = 0.5, 10.0


class StoreError(RunError):
    """The store refused or could not be reached; `is_transient` says whether the same may work later."""

    kind = "store"

    def __init__(self, cause: str, *, place: str, remedy: str, is_transient: bool = False) -> None:
        super().__init__(cause, place=place, remedy=remedy)
        self.is_transient = is_transient


class Backend(Protocol):
    """Objects under a URL. `plain` stores keep files under their own names and publish several at once."""

    url: str
    plain: bool

    def read(self, key: str) -> bytes | None:
        """The object, or None where there is none."""
        ...

    def write(self, key: str, data: bytes) -> None:
        """Put an object, over an earlier one."""
        ...

    def sizes(self, folder: str) -> dict[str, int]:
        """The objects below a folder, by their name in it, with their sizes."""
        ...

    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; those that are not there are no error."""
        ...

    def copy_to(self, key: str, target: Path) -> bool:
        """Put the object into a local file; False where there is none. Of plain stores only."""
        ...

    def commit(self, files: Mapping[str, Path | bytes], doomed: Sequence[str], message: str) -> None:
        """Put and remove objects, all at once. Of plain stores only."""
        ...


class Store:
    """A backend whose transient faults are retried: exponential back-off with jitter, then one clear error (final)."""

    def __init__(self, backend: Backend, report: Report = lambda line: None) -> None:
        self.url = backend.url
        self.plain = backend.plain
        self._backend = backend
        self._report = report
        self._reached = False

    def read(self, key: str) -> bytes | None:
        """The object, or None where there is none."""
        return self._try(lambda: self._backend.read(key))

    def write(self, key: str, data: bytes) -> None:
        """Put an object, over an earlier one."""
        self._try(lambda: self._backend.write(key, data))

    def sizes(self, folder: str) -> dict[str, int]:
        """The objects below a folder, by their name in it, with their sizes."""
        return self._try(lambda: self._backend.sizes(folder))

    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder."""
        return self._try(lambda: self._backend.folders(folder))

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; those that are not there are no error."""
        self._try(lambda: self._backend.delete(keys))

    def copy_to(self, key: str, target: Path) -> bool:
        """Put the object into a local file; False where there is none."""
        return self._try(lambda: self._backend.copy_to(key, target))

    def commit(self, files: Mapping[str, Path | bytes], doomed: Sequence[str], message: str) -> None:
        """Put and remove objects, all at once."""
        self._try(lambda: self._backend.commit(files, doomed, message))

    def place(self, key: str) -> str:
        """The whole address of an object."""
        base, _, query = self.url.partition("?")
        return "/".join(part for part in (base.rstrip("/"), key) if part) + (f"?{query}" if query else "")

    def _try(self, work: Callable[[], Result]) -> Result:
        # A server that never answered is most likely a wrong address: that is said soon.
        attempts = ATTEMPTS if self._reached else FIRST_ATTEMPTS
        for attempt in range(1, attempts + 1):
            try:
                done = work()
                self._reached = True
                return done
            except StoreError as problem:
                if not problem.is_transient or attempt == attempts:
                    raise
                delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** (attempt - 1)) * random.uniform(0.5, 1.0)
                self._report(f"{problem.cause}; attempt {attempt + 1} of {attempts} in {delay:.1f} s")
                time.sleep(delay)
        raise AssertionError("the last attempt returns or raises")
