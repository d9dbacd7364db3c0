"""The account of every prompt: taken, answered, judged, and what became of it in the end.

At every moment the prompts taken are those with a fate and those that are open, so that none is lost unseen.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from operant.engines.language.telemetry.heartbeat import Watch
from operant.engines.language.telemetry.trace import Trace

Step = Literal["generated", "judged", "stale", "redone"]
Fate = Literal["learnt", "dropped", "failed", "left"]
NEVER = 1e9


class Ledger:
    """Counts of steps and fates, and the open prompts by their place in the course (final). Any thread may use it."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.counts: Counter[str] = Counter()
        self._open: dict[int, str] = {}
        self._lock = threading.Lock()

    @property
    def open(self) -> list[int]:
        """The places of prompts that have no fate yet."""
        with self._lock:
            return sorted(self._open)

    def is_open(self, place: int) -> bool:
        """Whether a prompt was taken and has no fate yet."""
        with self._lock:
            return place in self._open

    def redo(self, problems: Iterable[str], **facts: object) -> None:
        """The open prompts of these problems are done once more."""
        lost = set(problems)
        with self._lock:
            places = [place for place, problem in self._open.items() if problem in lost]
        for place in places:
            self.note(place, "redone", **facts)

    def take(self, place: int, problem: str) -> None:
        """A prompt is begun."""
        with self._lock:
            self.counts["taken"] += 1
            self._open[place] = problem
        self.trace.prompt("b", place, "taken", problem=problem)

    def note(self, place: int, step: Step, **facts: object) -> None:
        """Something happens to an open prompt."""
        with self._lock:
            self.counts[step] += 1
        self.trace.prompt("n", place, step, **facts)

    def end(self, place: int, fate: Fate, **facts: object) -> None:
        """A prompt has met its fate."""
        with self._lock:
            self.counts[fate] += 1
            problem = self._open.pop(place)
        self.trace.prompt("e", place, fate, problem=problem, **facts)

    def leave(self) -> None:
        """End the account: what is still open is left for a resumed run to redo."""
        for place in self.open:
            self.end(place, "left")

    def in_words(self) -> str:
        """The account in one line."""
        parts = [f"{self.counts[key]} {key}" for key in ("learnt", "dropped", "failed", "left") if self.counts[key]]
        asides = [f"{self.counts[key]} {key}" for key in ("stale", "redone") if self.counts[key]]
        return f"{self.counts['taken']} prompts taken: {', '.join(parts + asides)}"


def _nobody(kind: str, message: str) -> None:
    del kind, message


@dataclass
class Witness:
    """Who looks on while a session works: the trace, the account of prompts, the watcher, and `tell` for people.

    The default sees nothing, for sessions that leave no record.
    """

    tell: Callable[[str, str], None] = _nobody
    trace: Trace = field(default_factory=Trace)
    patience: float = NEVER
    ledger: Ledger = field(init=False)
    watch: Watch = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.trace)
        self.watch = Watch(self.tell, self.patience)

    def __enter__(self) -> Witness:
        if self.patience != NEVER:
            self.watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.watch.close()
        self.ledger.leave()
        self.trace.flush()
