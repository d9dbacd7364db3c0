"""What an engine foretells of a session before it runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """The cost of one session on this machine while the others train too; `lines` explain its numbers."""

    parameters: int
    lines: list[str]
    updates: int
    frames_per_second: float
    seconds_per_session: float
    disk_bytes: int
