"""What an engine foretells of a session before it runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from operant.errors import UsageError


@dataclass(frozen=True)
class Estimate:
    """The cost of one session on this machine while the others train too; `lines` explain its numbers."""

    parameters: int
    lines: list[str]
    updates: int
    frames_per_second: float
    seconds_per_session: float
    disk_bytes: int
    tokens_per_second: float | None = None


@dataclass(frozen=True)
class MemoryForecast:
    """Bytes of a device that one session takes, by part in each phase; `refusal` is set where they do not fit."""

    device: str
    device_bytes: int | None
    phases: dict[str, dict[str, int]]
    peak: int
    peak_phase: str
    lines: list[str] = field(default_factory=list)
    refusal: UsageError | None = None
