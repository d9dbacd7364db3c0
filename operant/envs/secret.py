"""The secret that hidden seeds are drawn from, so that nobody who reads this code can compute them.

It is made at first use, in a folder of its own among the user's data, for their eyes only. Machines that are to grade
alike get a copy of the file, named by OPERANT_SECRET_FILE. Records hold its fingerprint, never the secret.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from operant.errors import UsageError

VARIABLE = "OPERANT_SECRET_FILE"
KEY_BYTES = 32
LEAST_BYTES = 16


@dataclass(frozen=True)
class Secret:
    """A key that is never shown: seeds can be drawn from it, and its fingerprint compared."""

    key: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the secret, which reveals nothing else of it."""
        return self._digest("fingerprint", (), 6).hex()

    def seed(self, purpose: str, *parts: object) -> int:
        """A seed of 63 bits for a purpose; seeds of one purpose say nothing of those of another."""
        return int.from_bytes(self._digest(purpose, parts, 8), "big") >> 1

    def _digest(self, purpose: str, parts: tuple[object, ...], size: int) -> bytes:
        # Each part with its length before it, so that no two lists of parts read alike.
        text = b"".join(b"%d:%b" % (len(word), word) for word in (str(part).encode() for part in (purpose, *parts)))
        return blake2b(text, key=self.key[:64], digest_size=size).digest()


def secret_file() -> Path:
    """Where the secret is kept: the file that OPERANT_SECRET_FILE names, else one among the user's data."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser().absolute()
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data).absolute() / "operant" / "secret" / "grading"


def load_secret() -> Secret:
    """The secret of this user, made now if there is none; `UsageError` for a file that cannot serve as one."""
    file = secret_file()
    if not file.exists():
        if os.environ.get(VARIABLE):
            raise UsageError(f"{VARIABLE} names no file", place=str(file), remedy=f"unset {VARIABLE}, or copy it there")
        _make(file)
    try:
        if file.stat().st_mode & 0o077:
            raise UsageError("others may read the secret of hidden seeds", place=str(file), remedy=f"chmod 600 {file}")
        key = file.read_bytes().strip()
    except OSError as problem:
        raise UsageError(f"the secret of hidden seeds cannot be read: {problem.strerror}", place=str(file)) from None
    if len(key) < LEAST_BYTES:
        raise UsageError(f"a secret has {LEAST_BYTES} bytes at least, not {len(key)}", place=str(file))
    return Secret(blake2b(key).digest())


def _make(file: Path) -> None:
    """Write a fresh secret. Of several who do so at once one prevails, and nobody ever sees half of it."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w") as opened:
            opened.write(f"{secrets.token_hex(KEY_BYTES)}\n")
            opened.flush()
            os.fsync(fd)
        with suppress(FileExistsError):
            os.link(fresh, file)
    except OSError as problem:
        raise UsageError(
            f"the secret of hidden seeds cannot be written: {problem.strerror}",
            place=str(file.parent),
            remedy=f"{VARIABLE}=FILE names another place",
        ) from None
    finally:
        fresh.unlink(missing_ok=True)
