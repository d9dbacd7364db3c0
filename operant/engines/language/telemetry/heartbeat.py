"""Heartbeats: every component says what it does or whom it waits for, and a watchdog reports who holds up whom.

A component that computes is stalled when it gives no sign for longer than the patience; one that waits is stalled
when it has waited that long and the one it waits for gives no sign either. A stall is told once. When the trainer
has waited in vain for `STOP_FACTOR` times the patience, its next `check` raises, and the run ends with the reason.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from operant.errors import RunError

STOP_FACTOR = 5
TRAINER = "trainer"


@dataclass
class Heartbeat:
    """The heartbeat of one component: what it does since when, for whom it waits, and its last sign of life."""

    name: str
    doing: str | None = None
    waits_for: str | None = None
    since: float = field(default_factory=time.monotonic)
    last: float = field(default_factory=time.monotonic)

    def beat(self) -> None:
        """Give a sign of life."""
        self.last = time.monotonic()

    @contextmanager
    def busy(self, doing: str, waits_for: str | None = None) -> Iterator[None]:
        """Within the block the component does this, or waits for that one."""
        before = self.doing, self.waits_for, self.since
        self.doing, self.waits_for, self.since = doing, waits_for, time.monotonic()
        self.beat()
        try:
            yield
        finally:
            self.doing, self.waits_for, self.since = before
            self.beat()


class Watchdog:
    """Watches the heartbeats of a session from a thread of its own (final). Close it."""

    def __init__(self, tell: Callable[[str, str], None], patience: float) -> None:
        self.patience = patience
        self.heartbeats: dict[str, Heartbeat] = {}
        self._tell = tell
        self._told: set[tuple[str, float]] = set()
        self._failure: RunError | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)

    def heartbeat(self, name: str) -> Heartbeat:
        """The heartbeat of a component."""
        return self.heartbeats.setdefault(name, Heartbeat(name))

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def check(self) -> None:
        """Raise if the run cannot go on; whoever waits calls this from time to time."""
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Watch no more."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self, now: float) -> None:
        """Tell of new stalls, and give up on a trainer that has waited too long."""
        for heartbeat in list(self.heartbeats.values()):
            age = self._stalled(heartbeat, now)
            if age > self.patience and (heartbeat.name, heartbeat.since) not in self._told:
                self._told.add((heartbeat.name, heartbeat.since))
                self._tell("stall", self._words(heartbeat, now))
            if heartbeat.name == TRAINER and heartbeat.waits_for and age > STOP_FACTOR * self.patience:
                self._failure = RunError(
                    self._words(heartbeat, now), remedy="operant resume RUN    (the last checkpoint is good)"
                )

    def _watch(self) -> None:
        while not self._over.wait(min(1.0, self.patience / 4)):
            self.look(time.monotonic())

    def _stalled(self, heartbeat: Heartbeat, now: float) -> float:
        """Seconds for which a component has been held up; 0 for one that does nothing."""
        if heartbeat.doing is None:
            return 0.0
        if heartbeat.waits_for is None:
            return now - max(heartbeat.last, heartbeat.since)
        other = self.heartbeats.get(heartbeat.waits_for)
        alive = other.last if other is not None and other.doing is not None else heartbeat.since
        return now - max(heartbeat.since, alive)

    def _words(self, heartbeat: Heartbeat, now: float) -> str:
        """Who waits for whom, and what that one does."""
        age = f"{now - heartbeat.since:.0f} s"
        if heartbeat.waits_for is None:
            silent = f"{now - heartbeat.last:.0f} s"
            return f"the {heartbeat.name} has been {heartbeat.doing} for {age}, without a sign of life for {silent}"
        other = self.heartbeats.get(heartbeat.waits_for)
        if other is None or other.doing is None:
            idle = f"the {heartbeat.waits_for}, which does nothing ({heartbeat.doing})"
            return f"the {heartbeat.name} has waited {age} for {idle}"
        does = f"waits for the {other.waits_for}" if other.waits_for else f"has been {other.doing}"
        spent = f"{now - other.since:.0f} s"
        return (
            f"the {heartbeat.name} has waited {age} for the {other.name}, which {does} for {spent} ({heartbeat.doing})"
        )
