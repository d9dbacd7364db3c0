"""The account of every prompt: drawn, generated, graded, and what became of it in the end.

At every moment the prompts drawn are those with an outcome and those that are open, so that none is lost unseen. Each
event is a row of the prompt journal and an event of the trace.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable

from operant.engines.language.telemetry.trace import Trace
from operant.run.prompt_journal import PromptEvent, PromptJournal, PromptOutcome


class PromptAccounting:
    """Counts of events and outcomes, and the open prompts by their place (final). Any thread may use it."""

    def __init__(self, trace: Trace, journal: PromptJournal | None = None) -> None:
        self.trace = trace
        self.journal = journal
        self.counts: Counter[str] = Counter()
        self._open: dict[int, str] = {}
        self._left = False
        self._lock = threading.Lock()

    @property
    def open(self) -> list[int]:
        """The places of prompts that have no outcome yet."""
        with self._lock:
            return sorted(self._open)

    def is_open(self, place: int) -> bool:
        """Whether a prompt was drawn and has no outcome yet."""
        with self._lock:
            return place in self._open

    def redo(self, problems: Iterable[str], **facts: object) -> None:
        """The open prompts of these problems are done once more."""
        lost = set(problems)
        with self._lock:
            places = [place for place, problem in self._open.items() if problem in lost]
        for place in places:
            self.note(place, "redone", **facts)

    def draw(self, place: int, problem: str) -> None:
        """A prompt is drawn from the sampler."""
        with self._lock:
            self.counts["drawn"] += 1
            self._open[place] = problem
        self._write("b", place, "drawn", problem=problem)

    def note(self, place: int, event: PromptEvent, **facts: object) -> None:
        """Something happens to an open prompt. A worker that did not end in time may still say so after the end."""
        with self._lock:
            if not self._left:
                self.counts[event] += 1
                self._write("n", place, event, **facts)

    def end(self, place: int, outcome: PromptOutcome, **facts: object) -> None:
        """A prompt has its outcome."""
        self._end(place, outcome, **facts)

    def leave(self) -> None:
        """End the account: what is still open is left for a resumed run to draw again."""
        with self._lock:
            self._left = True
        for place in self.open:
            self._end(place, "left")

    def _end(self, place: int, outcome: str, **facts: object) -> None:
        with self._lock:
            self.counts[outcome] += 1
            problem = self._open.pop(place)
            self._write("e", place, outcome, problem=problem, **facts)

    def _write(self, phase: str, place: int, event: str, **facts: object) -> None:
        if self.journal is not None:
            self.journal.add(event, place, **facts)
        self.trace.prompt(phase, place, event, **facts)
