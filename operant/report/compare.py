"""Which of several runs is better: scores over seeds and their cost, and for each pair what the seeds allow to say.

A side of the comparison is one trial, or with `by` all trials that have the same value of a setting. Two sides are
compared on the problems that both have, and only if they are different runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from operant.errors import UsageError
from operant.report.compare_text import render
from operant.report.improvement import Comparison, corrected, probability_of_improvement, seeds_needed
from operant.report.problems import sameness
from operant.report.sides import Pair, Side, sides_of


@dataclass(frozen=True)
class Verdict:
    """Several sides held against each other, every pair of them; `notes` are what makes them less comparable."""

    sides: tuple[Side, ...]
    pairs: tuple[Pair, ...]
    notes: tuple[str, ...]

    @property
    def a(self) -> Side:
        """The first side."""
        return self.sides[0]

    @property
    def b(self) -> Side:
        """The second side."""
        return self.sides[1]

    @property
    def comparison(self) -> Comparison | None:
        """Of the first pair; None where it cannot be compared."""
        return self.pairs[0].comparison

    @property
    def seeds(self) -> int | None:
        """How many for each would show the difference of the first pair; None if unknown."""
        return self.pairs[0].seeds

    def as_dict(self) -> dict[str, Any]:
        """Everything, for `--json`; of two sides also by the names `a` and `b`."""
        sides, pairs = [side.as_dict() for side in self.sides], [pair.as_dict() for pair in self.pairs]
        two = {**pairs[0], "a": sides[0], "b": sides[1]} if len(sides) == 2 else {}
        return {**two, "runs": sides, "pairs": pairs, "notes": list(self.notes)}

    def __str__(self) -> str:
        return render(self.sides, self.pairs, self.notes)


def compare(
    paths: Sequence[Path], by: str | None = None, difference: float | None = None, price: float | None = None
) -> Verdict:
    """Compare trials by the scores of their seeds; all must have been evaluated.

    With `by`, a setting's dotted path, trials with the same value of it are one side. `difference` is the one that
    `seeds` are counted for, by default the one found. `price` is of an hour of a machine, for runs that have none.
    """
    sides = sides_of(paths, by, price)
    if len(sides) < 2:
        found = "one run" if by is None else f"one value of {by}, {sides[0].name}"
        raise UsageError(f"there is only {found}, nothing to compare it with", remedy="name another run")
    pairs = [_pair(a, b) for a, b in combinations(sides, 2)]
    compared = [pair for pair in pairs if pair.comparison is not None]
    fixed = iter(corrected([pair.comparison for pair in compared if pair.comparison is not None]))
    scores = {side.label: side for side in sides}
    pairs = [
        pair if pair.comparison is None else _with_seeds(pair, next(fixed), scores[pair.a], scores[pair.b], difference)
        for pair in pairs
    ]
    return Verdict(tuple(sides), tuple(pairs), tuple(_notes(sides)))


def _pair(a: Side, b: Side) -> Pair:
    """The pair before its p is corrected for others."""
    same = next((words for x in a.trials for y in b.trials if (words := sameness(x, y)) is not None), None)
    shared = [problem for problem in a.scores if problem in b.scores]
    if same is not None or not shared:
        reason = same or f"other problems, {next(iter(a.scores)).difference(next(iter(b.scores)))}"
        return Pair(a.label, b.label, None, reason, 0)
    first, second = ({str(k): side.scores[problem] for k, problem in enumerate(shared)} for side in (a, b))
    return Pair(a.label, b.label, probability_of_improvement(first, second), None, len(shared))


def _with_seeds(pair: Pair, comparison: Comparison, a: Side, b: Side, difference: float | None) -> Pair:
    """The pair with its corrected comparison, and the seeds that its difference, or the one given, would take."""
    if len(a.scores) > 1 or len(b.scores) > 1 or a.mean is None or b.mean is None:
        return replace(pair, comparison=comparison)
    asked = a.mean.point - b.mean.point if difference is None else difference
    # The wider of the two spreads: too many seeds cost time, too few cost the answer.
    spread = max((next(iter(side.scores.values())) for side in (a, b)), key=lambda values: float(np.std(values)))
    needed = seeds_needed(spread, asked, comparisons=comparison.comparisons)
    return replace(pair, comparison=comparison, difference=asked, seeds=needed, asked=difference is not None)


def _notes(sides: Sequence[Side]) -> list[str]:
    """What makes the sides less comparable than they look."""
    notes = [note for side in sides for note in side.notes]
    frames = {f"{side.frames:,}" for side in sides}
    if len(frames) > 1:
        told = [f"{side.frames:,}" for side in sides]
        notes.append(f"the frames per seed differ: {', '.join(told[:-1])} and {told[-1]}")
    engines = {str(trial.spec.get("engine")) for side in sides for trial in side.trials} - {"auto", "None"}
    if len(engines) > 1:
        notes.append(f"the engines differ ({', '.join(sorted(engines))}): the same seeds begin other episodes")
    for side in sides:
        if side.search is not None:
            notes.append(f"{side.label} was found by a search of {side.search[0]} trials, cost {side.search[1].text()}")
    return list(dict.fromkeys(notes))
