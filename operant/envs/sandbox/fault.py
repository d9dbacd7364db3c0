"""Whose fault it is that a sandbox died: the machine's, or that of the code that ran in it.

A score must come of everything that a graded program can do, or a program could trade a bad score for none. So work
whose sandbox dies is done again in another, and when it dies each time, a program of our own is run: if that runs well,
the machine is well, and the deaths were the graded program's doing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from operant.envs.sandbox.base import SandboxDied
from operant.envs.sandbox.limits import Limits
from operant.envs.sandbox.opening import Kind, open_sandbox
from operant.errors import OperantError

TRIES = 3
CONTROL_SECONDS = 30.0

Result = TypeVar("Result")


class SandboxKilled(OperantError):
    """The sandbox died every time that this code ran in it, and not under other code."""

    kind = "sandbox"


def retried(work: Callable[[], Result], healthy: Callable[[], bool], tries: int = TRIES) -> Result:
    """What `work` comes to, done again while its sandboxes die.

    After the last try `healthy`, which runs harmless code in the same way, decides: `SandboxKilled` if it does well,
    else the `SandboxDied` that tells what is wrong with the machine.
    """
    for left in reversed(range(tries)):
        try:
            return work()
        except SandboxDied as died:
            if left:
                continue
            if healthy():
                raise SandboxKilled(f"the sandbox died {tries} times of this, and of nothing else") from died
            raise
    raise AssertionError("the last try returns or raises")


def sandbox_works(kind: Kind = "auto") -> bool:
    """Whether a harmless program runs in a fresh sandbox now."""
    try:
        with open_sandbox(kind, Limits()) as sandbox:
            return sandbox.run(["true"], seconds=CONTROL_SECONDS).code == 0
    except SandboxDied:
        return False
