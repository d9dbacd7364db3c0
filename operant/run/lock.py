"""The lock of a run: two processes never write one run, and a dead one never keeps it.

On one host the kernel decides (`flock`), so the lock is free the instant its holder dies, however it
dies. Between hosts that share a disk the kernel may not know, so there the heartbeat decides: the
holder touches the file every few seconds.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

from operant.errors import RunError
from operant.run.holder import Holder
from operant.run.layout import shown, timestamp

HEARTBEAT_SECONDS = 5.0
STALE_SECONDS = 60.0
PATIENCE_SECONDS = 1.0
ORPHAN_SECONDS = 30.0
RETRY_SECONDS = 0.02


class RunLock:
    """The right to write one run. `acquire` to take it, `release` to give it back.

    `lost` turns true when the heartbeat finds that the lock is no longer ours (see `is_mine`).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lost = False
        self._file: int | None = None
        self._note = b""
        self._ended = threading.Event()
        self._beat: threading.Thread | None = None

    def acquire(self) -> None:
        """Take the lock, or raise `RunError` saying who has it."""
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        except PermissionError:
            raise RunError(
                "you may read this run but not write it",
                place=shown(self.path.parent),
                remedy="copy the directory to a place of your own and resume the copy",
            ) from None
        try:
            self._claim(file)
        except BaseException:
            os.close(file)
            raise
        self._file = file
        _held.add(self)
        self._ended.clear()
        self._beat = threading.Thread(target=self._keep_beating, name="run-lock-heartbeat", daemon=True)
        self._beat.start()

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        if self._file is None:
            return
        self._ended.set()
        if self._beat is not None:
            self._beat.join()
        with suppress(OSError):
            # An empty file has no holder, so another host need not wait for the heartbeat to go stale.
            if self.is_mine():
                os.ftruncate(self._file, 0)
        self.abandon()

    def is_mine(self) -> bool:
        """Whether the lock file still carries our note.

        It does not when another host took the run over, because this process slept past its
        heartbeat, nor when the directory was moved away.
        """
        try:
            return self._file is not None and self.path.read_bytes() == self._note
        except OSError:
            return False

    def abandon(self) -> None:
        """Close our handle without a word: a forked child must not keep its dead parent's lock alive."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        _held.discard(self)

    def _claim(self, file: int) -> None:
        begun = time.monotonic()
        # A reader that asks `is_held` has the lock for a moment, and an orphan until it has saved.
        while not _try_flock(file, self.path, fcntl.LOCK_EX):
            waited, holder = time.monotonic() - begun, Holder.of_note(_read_note(file))
            if waited > PATIENCE_SECONDS and not (waited < ORPHAN_SECONDS and holder and holder.is_orphan):
                raise _busy(self.path, _read_note(file), _age(file))
            time.sleep(RETRY_SECONDS)
        if _is_held_elsewhere(_read_note(file), _age(file)):
            raise _busy(self.path, _read_note(file), _age(file))
        who = {"pid": os.getpid(), "host": socket.gethostname(), "launcher": _launcher}
        note = {**who, "started": timestamp()}
        self._note = json.dumps(note).encode() + b"\n"
        os.ftruncate(file, 0)
        os.pwrite(file, self._note, 0)

    def _keep_beating(self) -> None:
        while not self._ended.wait(HEARTBEAT_SECONDS):
            if not self.is_mine():
                self.lost = True
                return
            # A missed beat is no reason to stop training; the next one finds out if somebody took over.
            with suppress(OSError):
                os.utime(self.path)


def holder_of(path: Path) -> Holder | None:
    """The live process that holds the lock; None where nobody does."""
    if not is_held(path):
        return None
    try:
        return Holder.of_note(json.loads(path.read_bytes()))
    except (OSError, ValueError):
        return None


def launched_by(pid: int) -> None:
    """Say which process started this one, so that locks taken from now on name it."""
    global _launcher
    _launcher = pid


def is_held(path: Path) -> bool:
    """Whether some live process holds the lock; asks without disturbing the holder."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _try_flock(file, path, fcntl.LOCK_SH) or _is_held_elsewhere(_read_note(file), _age(file))
    except RunError:
        # Where nothing can be locked nothing can be running.
        return False
    finally:
        os.close(file)


def _try_flock(file: int, path: Path, mode: int) -> bool:
    try:
        fcntl.flock(file, mode | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR):
            return False
        raise RunError(
            f"this file system cannot lock files ({error.strerror}), so a run here would not be safe",
            place=shown(path),
            remedy="keep the runs on a local disk",
        ) from error
    return True


def _read_note(file: int) -> dict[str, Any]:
    """Who wrote the lock file last; empty when it was released or never written."""
    try:
        note = json.loads(os.pread(file, 4096, 0))
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def _age(file: int) -> float:
    """Seconds since the last heartbeat."""
    return max(0.0, time.time() - os.fstat(file).st_mtime)


def _is_held_elsewhere(note: dict[str, Any], age: float) -> bool:
    """Whether another host wrote the note and still lives. Our own host's dead hold nothing."""
    return bool(note) and note.get("host") != socket.gethostname() and age < STALE_SECONDS


def _busy(path: Path, note: dict[str, Any], age: float) -> RunError:
    pid, host = note.get("pid", "unknown"), note.get("host", "unknown")
    wait = "" if host == socket.gethostname() else f"; if that host is dead, try again in {STALE_SECONDS:.0f} s"
    return RunError(
        f"the run is being written by process {pid} on {host}, heartbeat {age:.0f} s ago",
        place=shown(path.parent),
        remedy=f"`operant show {shown(path.parent)}` to look on, or stop that process first{wait}",
    )


_launcher: int | None = None
_held: weakref.WeakSet[RunLock] = weakref.WeakSet()


def _abandon_all() -> None:
    for lock in list(_held):
        lock.abandon()


os.register_at_fork(after_in_child=_abandon_all)
