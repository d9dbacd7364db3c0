"""A program that runs in a sandbox."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod

from operant.envs.sandbox.limits import Ran


class Running(ABC):
    """A program that runs in a sandbox, with three pipes: `stdin`, `stdout` and `stderr` are our ends (abstract).

    The pipes belong to this object. Its children live as long as it does, unless a `Sandbox.run` ends before.
    """

    stdin: int
    stdout: int
    stderr: int

    @abstractmethod
    def wait(self, seconds: float) -> Ran | None:
        """How it ended, without its output; None if it still runs after so many seconds."""

    @abstractmethod
    def kill(self) -> None:
        """End it now."""

    def close_stdin(self) -> None:
        """Tell the program that no more input comes."""
        if self.stdin >= 0:
            os.close(self.stdin)
            self.stdin = -1

    def close(self) -> None:
        """Close the pipes; the program itself is not touched."""
        self.close_stdin()
        for fd in (self.stdout, self.stderr):
            if fd >= 0:
                os.close(fd)
        self.stdout = self.stderr = -1
