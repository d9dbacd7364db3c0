"""A sandbox as its users see it, whatever keeps it shut."""

from __future__ import annotations

import io
import posixpath
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from operant.envs.sandbox.limits import Limits, Ran
from operant.envs.sandbox.pump import pump
from operant.envs.sandbox.running import Running
from operant.errors import OperantError

# A snapshot is a tar of at most the work area; its headers and padding take about this much more per file.
TAR_OVERHEAD = 2048
FILE_SECONDS = 30.0
MADE = 1_600_000_000  # when files of an archive were written: not so long ago that tar complains

# To write into a pipe or to read from one would be to wait.
WRITE = """
[ ! -e "$1" ] || [ -f "$1" ] || { echo 'it is no plain file' >&2; exit 4; }
mkdir -p -- "$(dirname -- "$1")" && cat > "$1"
"""
# A link anywhere in the path, a folder, a device or a pipe is no plain file. Files are never named by their links.
FETCH = """
[ -e "$1" ] || [ -L "$1" ] || { echo 'there is no such file' >&2; exit 3; }
[ "$(realpath -e -- "$1" 2>/dev/null)" = "$(pwd -P)/$1" ] && [ -f "$1" ] || { echo 'it is no plain file' >&2; exit 4; }
[ "$(stat -c %s -- "$1")" -le "$2" ] || { echo "it is larger than $2 bytes" >&2; exit 5; }
exec head -c "$2" -- "$1"
"""
# By its full name a work area can be opened again whose owner has shut it to themselves.
UNLOCK = 'chmod u+rwx -- "$(pwd -P)"; '
# Files that were locked are kept too; what is mounted below the work area, such as packages, is not part of it.
SNAPSHOT = (
    UNLOCK + "find . -xdev -type d ! -perm -u=rwx -exec chmod u+rwx {} ';' ; "
    "find . -xdev -type f ! -perm -u=rw -exec chmod u+rw {} + ; tar --one-file-system -cf - ."
)
RESTORE = f"{UNLOCK}find . -mindepth 1 -delete && tar -xf -"


def archive(files: Mapping[str, bytes]) -> bytes:
    """Files as an archive, as `Sandbox.restore` reads it; the same files always give the same bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, data in files.items():
            member = tarfile.TarInfo(path)
            member.size, member.mode, member.mtime = len(data), 0o644, MADE
            tar.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def unarchived(packed: bytes) -> dict[str, bytes]:
    """The files of an archive that `archive` has made; none that came out of a sandbox is to be read out here."""
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r") as tar:
        members = [(member.name, tar.extractfile(member)) for member in tar.getmembers()]
        return {name: data.read() for name, data in members if data is not None}


class SandboxDied(OperantError):
    """The sandbox is gone, by a crash or by a kill; a fresh one has to be opened."""

    kind = "sandbox"


class CommandTooLong(OperantError):
    """A command line that does not fit; nothing was started, and the sandbox goes on."""

    kind = "sandbox"

    def __init__(self) -> None:
        super().__init__("so long a command line does not fit; write a file and name it")


class Sandbox(ABC):
    """A place of its own for code of others: a work area, limits, no network (abstract).

    Everything is done by programs inside, so that no path, link or device of the sandbox is ever resolved
    outside. It is used by one thread, the one that opened it: the sandbox dies with that thread.
    """

    limits: Limits
    python: str

    @abstractmethod
    def start(
        self, argv: Sequence[str], *, environment: Mapping[str, str] | None = None, alone: bool = False
    ) -> Running:
        """Start a program in the work area and go on. When one that runs `alone` ends, what it left running ends."""

    @abstractmethod
    def kill(self) -> None:
        """End every process of the sandbox at once; it cannot be used again."""

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether it can still be used."""

    def close(self) -> None:
        """Kill it, and leave nothing behind."""
        self.kill()

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        seconds: float,
        environment: Mapping[str, str] | None = None,
    ) -> Ran:
        """Run a program to its end or to the end of its time; processes that it leaves behind are killed."""
        return self._run(argv, stdin, seconds, environment, self.limits.output)

    def _run(
        self, argv: Sequence[str], stdin: bytes, seconds: float, environment: Mapping[str, str] | None, keep: int
    ) -> Ran:
        running = self.start(argv, environment=environment, alone=True)
        try:
            return pump(running, stdin, seconds, keep)
        finally:
            running.close()

    def read(self, path: str) -> bytes:
        """The bytes of a file, by its path in the work area or from the sandbox's root."""
        return self._file(["cat", "--", path], b"", f"cannot read {path}").out

    def fetch(self, path: str, most: int) -> bytes:
        """The bytes of a plain file of the work area, by its relative path; an error for anything else, or too large.

        Nothing that the code inside has made of its work area can make this wait or read without end.
        """
        return self._file(["sh", "-c", FETCH, "sh", path, str(most)], b"", f"cannot take {path}").out

    def write(self, path: str, data: bytes) -> None:
        """Write a file; missing folders are made."""
        self._file(["sh", "-c", WRITE, "sh", posixpath.join(".", path)], data, f"cannot write {path}")

    def fill(self, files: Mapping[str, bytes]) -> None:
        """Write many files at once, by their relative paths."""
        if files:
            self._file(["tar", "-xf", "-"], archive(files), "cannot write the files")

    def snapshot(self) -> bytes:
        """The whole work area as an archive, for `restore` here or in another sandbox."""
        return self._file(["sh", "-c", SNAPSHOT], b"", "cannot take a snapshot").out

    def restore(self, snapshot: bytes) -> None:
        """Make the work area what it was when the snapshot was taken."""
        self._file(["sh", "-c", RESTORE], snapshot, "cannot restore the snapshot")

    def _file(self, argv: Sequence[str], stdin: bytes, problem: str) -> Ran:
        most = self.limits.disk + TAR_OVERHEAD * self.limits.files
        ran = self._run(argv, stdin, FILE_SECONDS, None, most)
        if ran.code or ran.cut:
            raise OperantError(f"{problem}: {ran.err.decode(errors='replace').strip() or ran.killed or 'too large'}")
        return ran

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
