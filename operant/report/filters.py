"""Which episodes of many: filters and orders, the same for the terminal and the app."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from operant.errors import UsageError
from operant.report.episodes import Catalogue, Entry, newest_first

SEPARATOR = ".."
ORDERS: dict[str, Callable[[Entry], tuple[float, float]]] = {
    "best": lambda entry: (_or(entry.score, float("-inf")), entry.line),
    "worst": lambda entry: (-_or(entry.score, float("inf")), entry.line),
    "longest": lambda entry: (entry.turns or entry.length, entry.line),
    "slowest": lambda entry: (_or(entry.took, -1.0), entry.line),
}
NEWEST = "newest"


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included; None is no end."""

    low: float | None = None
    high: float | None = None

    @classmethod
    def parse(cls, text: str, option: str) -> Range:
        """`0.2..0.8`, `0.5..`, `..0`, or one number."""
        low, separator, high = text.partition(SEPARATOR)
        try:
            if not separator:
                return cls(float(low), float(low))
            return cls(float(low) if low else None, float(high) if high else None)
        except ValueError:
            raise UsageError(
                f"{text!r} is no range of numbers", place=option, remedy=f"{option} 0.2..0.8, or {option} 0.5.."
            ) from None

    def holds(self, value: float | None) -> bool:
        """Whether a value lies inside; an unknown one lies inside only where there is no end at all."""
        if self.low is None and self.high is None:
            return True
        if value is None:
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


@dataclass(frozen=True)
class Filter:
    """What episodes must be like. Tasks and items may be patterns (`blotto*`); `text` is looked for in every turn."""

    task: str | None = None
    item: str | None = None
    split: str | None = None
    ended: str | None = None
    score: Range = field(default_factory=Range)
    version: Range = field(default_factory=Range)
    text: str | None = None
    faulty: bool = False
    failed: bool = False

    def fits(self, entry: Entry) -> bool:
        """Whether an episode is wanted, as far as its entry says; `text` is not in it."""
        return (
            _like(entry.env, self.task)
            and _like(entry.item or "", self.item)
            and (self.split is None or entry.split == self.split)
            and (self.ended is None or entry.ended == self.ended)
            and self.score.holds(entry.score)
            and self.version.holds(entry.version)
            and not (self.faulty and not entry.faults)
            and not (self.failed and entry.ended != "error" and not entry.error)
        )


def select(catalogue: Catalogue, wanted: Filter, order: str = NEWEST) -> list[Entry]:
    """The wanted episodes in an order: newest, best, worst, longest or slowest first."""
    if order != NEWEST and order not in ORDERS:
        raise UsageError(f"there is no order {order!r}", remedy=f"--sort {', '.join([NEWEST, *ORDERS])}")
    fitting = [entry for entry in catalogue.entries if wanted.fits(entry)]
    if wanted.text:
        lines = catalogue.lines_of(fitting)
        fitting = [entry for entry, line in zip(fitting, lines, strict=True) if contains(line, wanted.text)]
    return list(newest_first(fitting)) if order == NEWEST else sorted(fitting, key=ORDERS[order], reverse=True)


def contains(line: bytes, text: str) -> bool:
    """Whether a turn of the episode in a line, or its error, has the text, in capitals or not."""
    wanted = text.lower()
    # Most lines are passed over without being parsed: what a turn has, its line has in JSON's spelling.
    if wanted.isascii() and json.dumps(wanted)[1:-1] not in line.decode("utf-8", "replace").lower():
        return False
    row = json.loads(line)
    said = [turn.get("text") or "" for turn in row.get("turns") or ()]
    faults = [turn.get("fault") or "" for turn in row.get("turns") or ()]
    return any(wanted in each.lower() for each in (*said, *faults, row.get("error") or ""))


def values_of(entries: Sequence[Entry]) -> dict[str, list[str]]:
    """What can be chosen from: the tasks, splits and endings that occur."""
    return {
        "task": sorted({entry.env for entry in entries}),
        "split": sorted({entry.split for entry in entries}),
        "ended": sorted({entry.ended for entry in entries}),
    }


def _like(value: str, pattern: str | None) -> bool:
    return pattern is None or fnmatchcase(value, pattern)


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value
