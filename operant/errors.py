"""What the user reads when something is wrong: the place, the cause, the next step.

Every expected failure in Operant is an `OperantError`; the command line prints it without a
traceback and exits with its code. Anything else that escapes is a defect of ours.
"""

from __future__ import annotations

from typing import ClassVar

EXIT_DONE = 0
EXIT_DIFFERS = 1
EXIT_USAGE = 2
EXIT_FAILED = 3
EXIT_STOPPED = 4


class RunWarning(UserWarning):
    """Something is wrong with a run that can be gone on without; the command line tells it on standard error."""


class OperantError(Exception):
    """A failure with a cause, and where known the place it happened and what to try next.

    `place` is a file, a `file:line:col` or a run directory; `remedy` is one line of advice, best
    of all a command that can be pasted.
    """

    exit_code: ClassVar[int] = EXIT_FAILED
    kind: ClassVar[str] = "failed"

    def __init__(self, cause: str, *, place: str | None = None, remedy: str | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.place = place
        self.remedy = remedy

    def __str__(self) -> str:
        head = f"{self.place}: {self.cause}" if self.place else self.cause
        return f"{head}\n  try: {self.remedy}" if self.remedy else head

    def as_dict(self) -> dict[str, str | int | None]:
        """The same facts for `--json`."""
        return {
            "error": self.kind,
            "cause": self.cause,
            "place": self.place,
            "remedy": self.remedy,
            "exit": self.exit_code,
        }


class UsageError(OperantError):
    """The request itself is wrong: nothing was started and nothing was written."""

    exit_code = EXIT_USAGE
    kind = "usage"


class SpecError(UsageError):
    """A spec file or an override is wrong. `str()` is the whole compiler-style report."""

    kind = "spec"


class RunError(OperantError):
    """A run could not be started, read or continued."""

    kind = "run"


class StoppedError(OperantError):
    """A person or the machine asked the run to stop; its checkpoint is good."""

    exit_code = EXIT_STOPPED
    kind = "stopped"
