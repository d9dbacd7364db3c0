"""A limited process where nothing better exists: it stops accidents, and it stops nobody who means harm."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence

from operant.envs.sandbox.agent import FOLDER_PREFIX
from operant.envs.sandbox.base import Sandbox
from operant.envs.sandbox.bubblewrap import as_nobody, interpreter
from operant.envs.sandbox.keeper import Keeper
from operant.envs.sandbox.limits import Limits
from operant.envs.sandbox.running import Running

LEAVE_SECONDS = 5.0
WARNING = "warning: code runs in an UNSAFE limited process: it can read your files and reach the network"

_warned = False


class LimitedProcess(Sandbox):
    """The kernel's limits and a folder of its own, nothing more; as root, at least as another user.

    Paths from the root are those of the machine, `Limits.disk` and `Limits.files` are not kept.
    """

    def __init__(self, limits: Limits) -> None:
        warn()
        self.limits = limits
        self.python, _ = interpreter()
        self._folder = tempfile.mkdtemp(prefix=FOLDER_PREFIX)
        user = as_nobody()
        if "user" in user:
            os.chown(self._folder, int(str(user["user"])), int(str(user["group"])))
        try:
            self._keeper = Keeper(self.python, limits, (), **{**user, "cwd": self._folder})
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def start(
        self, argv: Sequence[str], *, environment: Mapping[str, str] | None = None, alone: bool = False
    ) -> Running:
        own = {"PATH": os.defpath, "HOME": self._folder, "TMPDIR": self._folder, "LANG": "C.UTF-8"}
        return self._keeper.start(argv, {**own, **(environment or {})}, alone)

    def kill(self) -> None:
        self._keeper.leave(LEAVE_SECONDS)

    @property
    def alive(self) -> bool:
        return self._keeper.alive

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


def warn() -> None:
    """Say once, where a person sees it, that this is not safe."""
    global _warned
    if not _warned:
        print(WARNING, file=sys.stderr)
    _warned = True
