"""The account of every prompt: taken, answered, scored, and what became of it in the end.

At every moment the prompts taken are those with a fate and those that are open, so that none is lost unseen.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from typing import Literal

from operant.engines.language.telemetry.trace import Trace

PromptEvent = Literal["generated", "judged", "stale", "redone"]
PromptOutcome = Literal["learnt", "dropped", "failed", "left"]


class PromptAccounting:
    """Counts of events and outcomes, and the open prompts by their position (final). Any thread may use it."""

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

    def note(self, place: int, step: PromptEvent, **facts: object) -> None:
        """Something happens to an open prompt."""
        with self._lock:
            self.counts[step] += 1
        self.trace.prompt("n", place, step, **facts)

    def end(self, place: int, fate: PromptOutcome, **facts: object) -> None:
        """A prompt has met its fate."""
        with self._lock:
            self.counts[fate] += 1
            problem = self._open.pop(place)
        self.trace.prompt("e", place, fate, problem=problem, **facts)

    def leave(self) -> None:
        """End the account: what is still open is left for a resumed run to redo."""
        for place in self.open:
            self.end(place, "left")
