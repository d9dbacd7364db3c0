"""The agent's workspace: files in a sandbox of its own, which is opened when something must run in it.

Until then the files are only written down, so that a rollout that runs no command costs no sandbox. A sandbox that
dies is opened anew from what is known: the last snapshot, or the files at the start, and the files that were written
by a tool since. What commands changed in between is lost with it, and the caller gets an error that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from operant.envs.sandbox import Ran, Sandbox, SandboxDied, SandboxKilled
from operant.envs.sandbox.base import archive
from operant.errors import OperantError

TRIES = 3
CONTROL_SECONDS = 30.0
LONGEST_PATH = 200  # bytes; so no part of it is longer than a file system takes
MOST_FILES = 256  # of a folder that is taken
PAGE = 4_096  # bytes: what a small file takes

# The plain files below a folder, none of them by a link; a name with a line's end is no name.
LIST = """
[ -d "$1" ] && [ "$(realpath -e -- "$1")" = "$(pwd -P)/$1" ] || { echo 'there is no such folder' >&2; exit 3; }
exec find "$1" -type f ! -name '*
*' -printf '%p\\n'
"""

Result = TypeVar("Result")


class Interrupted(OperantError):
    """The sandbox died and took with it what commands had done; the workspace goes on from what is known."""

    kind = "sandbox"


class Workspace:
    """Files and a place to run commands (final). One thread uses it: the sandbox dies with the thread that opened it.

    `reopened` counts the sandboxes that died. `unsaved` says that commands have run since the last snapshot.
    """

    def __init__(
        self, opened: Callable[[], Sandbox], files: Mapping[str, bytes], most: int, base: bytes | None = None
    ) -> None:
        self._opened = opened
        self._base = base
        self._written = dict(files)
        self._most = most
        self._sandbox: Sandbox | None = None
        self.reopened = 0
        self.unsaved = False

    @property
    def in_memory(self) -> bool:
        """Whether all files are known without a sandbox."""
        return self._sandbox is None and self._base is None

    def run(
        self, argv: Sequence[str], stdin: bytes, seconds: float, environment: Mapping[str, str], changes: bool = True
    ) -> Ran:
        """Run a program to its end; what it leaves running ends with it. `changes`: it may change files."""

        def work(sandbox: Sandbox) -> Ran:
            self.unsaved |= changes
            return sandbox.run(argv, stdin=stdin, seconds=seconds, environment=environment)

        return self._do(work)

    def read(self, path: str, most: int) -> bytes:
        """The bytes of a plain file; an error for anything else, or a file that is larger."""
        known = self.known(path)
        if known is not None:
            return _limited(path, known, most)
        if self.in_memory and _plain(path) and not any(name.startswith(f"{path}/") for name in self._written):
            raise OperantError(f"cannot take {path}: there is no such file")
        return self._do(lambda box: box.fetch(path, most))

    def read_folder(self, path: str, most: int) -> dict[str, bytes]:
        """The plain files below a folder by their paths, of so many bytes in all; an error for more, or no folder."""
        folder = path.rstrip("/")
        known = {name: data for name, data in self._written.items() if name.startswith(f"{folder}/")}
        names = list(known) if self.in_memory else self._listed(folder)
        if not names:
            raise OperantError(f"cannot take {folder}/: there is no such folder, or it is empty")
        if len(names) > MOST_FILES:
            raise OperantError(f"cannot take {folder}/: it holds more than {MOST_FILES} files")
        found: dict[str, bytes] = {}
        for name in names:
            found[name] = self.read(name, most - sum(map(len, found.values())))
        return found

    def write(self, path: str, data: bytes) -> None:
        """Write a file; missing folders are made. Where the sandbox dies of it, the file is in the next one."""
        try:
            if not (self.in_memory and self._fits(path, data)):
                self._do(lambda box: box.write(path, data))
        except Interrupted:
            self._remember(path, data)
            raise
        self._remember(path, data)

    def known(self, path: str) -> bytes | None:
        """A file that is known without a sandbox, for no command has run."""
        return self._written.get(path) if self.in_memory else None

    def save(self) -> None:
        """Keep a snapshot, so that a death costs nothing that was there before."""
        if self.unsaved:
            self._base, self._written, self.unsaved = self.snapshot(), {}, False

    def state(self) -> tuple[dict[str, bytes], bytes | None]:
        """The files that were written, and the archive that they were written over, if any: all that is needed here.

        Commands are safe with it: a death costs nothing that was there before.
        """
        self.save()
        return dict(self._written), self._base

    def snapshot(self) -> bytes:
        """The workspace as an archive."""
        if self.in_memory:
            return archive(self._written)
        return self._do(lambda box: box.snapshot())

    def close(self) -> None:
        """End every process of it."""
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            sandbox.close()

    def _listed(self, folder: str) -> list[str]:
        ran = self._do(lambda box: box.run(["sh", "-c", LIST, "sh", folder], seconds=CONTROL_SECONDS))
        if ran.code or ran.killed:
            raise OperantError(f"cannot take {folder}/: {ran.err.decode(errors='replace').strip() or ran.killed}")
        return sorted(name for name in ran.out.decode(errors="replace").splitlines() if _plain(name))

    def _remember(self, path: str, data: bytes) -> None:
        if _plain(path):
            self._written[path] = data

    def _fits(self, path: str, data: bytes) -> bool:
        """Whether a file can be written down without a sandbox to say what becomes of it."""
        others = [other for other in self._written if other != path]
        clash = any(other.startswith(f"{path}/") or path.startswith(f"{other}/") for other in others)
        held = sum(_room(self._written[other]) for other in others)
        return _plain(path) and not clash and held + _room(data) <= self._most

    def _do(self, work: Callable[[Sandbox], Result]) -> Result:
        """Do something in the sandbox; if it dies and nothing is lost by that, do it again in another."""
        for left in reversed(range(TRIES)):
            try:
                self._sandbox = self._sandbox or self._filled()
                return work(self._sandbox)
            except SandboxDied as died:
                self.reopened += 1
                self.close()
                lost, self.unsaved = self.unsaved, False
                if lost:
                    raise Interrupted("the sandbox died and was made anew") from died
                if not left and self._opens():
                    raise SandboxKilled(f"the sandbox died {TRIES} times of this") from died
                if not left:
                    raise
        raise AssertionError("the last try returns or raises")

    def _opens(self) -> bool:
        """Whether a harmless program runs in a fresh sandbox, without the files of this workspace."""
        try:
            with self._opened() as sandbox:
                return sandbox.run(["true"], seconds=CONTROL_SECONDS).code == 0
        except SandboxDied:
            return False

    def _filled(self) -> Sandbox:
        sandbox = self._opened()
        try:
            if self._base is not None:
                sandbox.restore(self._base)
            sandbox.fill(self._written)
        except BaseException:
            sandbox.close()
            raise
        return sandbox


def _plain(path: str) -> bool:
    """A path that means the same file everywhere, with no link or folder to ask about."""
    parts = path.split("/")
    return bool(path) and len(path.encode()) <= LONGEST_PATH and not any(part in ("", ".", "..") for part in parts)


def _room(data: bytes) -> int:
    """The bytes that a file takes of a disk."""
    return -(-len(data) // PAGE) * PAGE


def _limited(path: str, data: bytes, most: int) -> bytes:
    if len(data) > most:
        raise OperantError(f"cannot take {path}: it is larger than {most} bytes")
    return data
