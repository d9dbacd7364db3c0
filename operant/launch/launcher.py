"""The seam between a trial and the place its jobs run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Resources:
    """What one job may use, and the file its output goes to.

    `threads` are those of its arithmetic; on the other `cores` it may step environments. `environment` are further
    variables, such as the GPUs it sees.
    """

    threads: int
    log: Path
    cores: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ticket:
    """A submitted job. `ident` means something to the launcher that gave it, and to nobody else."""

    name: str
    ident: int
    log: Path


class Launcher(Protocol):
    """Starts jobs somewhere and says how they fare."""

    def submit(self, argv: list[str], resources: Resources, name: str) -> Ticket:
        """Start `argv`; its output is appended to `resources.log`."""
        ...

    def poll(self, ticket: Ticket) -> int | None:
        """The exit code; negative for the signal that killed it; None while it runs."""
        ...

    def cancel(self, ticket: Ticket) -> None:
        """Ask the job to save and end; asked again, end it now."""
        ...
