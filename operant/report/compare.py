"""Which of several runs is better: scores over seeds and their cost, and for each pair what the seeds allow to say.

A side of the comparison is one trial, or with `by` all trials that have the same value of a setting. Two sides are
compared on the problems that both have, and only if they are different runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from operant.errors import UsageError
from operant.report.aggregates import aggregates, iqm_interval
from operant.report.cost import Cost, Ledger, added, search_cost
from operant.report.improvement import Comparison, corrected, probability_of_improvement, seeds_needed
from operant.report.normalize import normalized, reference_of
from operant.report.problems import Problem, group_by, sameness
from operant.report.read import TrialRecord, read_trial
from operant.report.stats import Estimate, Floats, mean_interval
from operant.report.summary import TrialSummary, summarise_record
from operant.run.layout import SEARCH_FILE, shown


@dataclass(frozen=True)
class Side:
    """One side: its scores by problem. Mean and interquartile mean are of one problem, None where there are several.

    `search` is how many trials the search had that a trial comes from, and what they cost together.
    """

    label: str
    name: str
    paths: tuple[str, ...]
    scores: dict[Problem, list[float]]
    frames: int
    seconds: float
    mean: Estimate | None
    iqm: Estimate | None
    cost: Cost | None
    search: tuple[int, Cost] | None
    trials: tuple[TrialRecord, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]

    @property
    def path(self) -> str:
        """Where it is; of several trials, the first."""
        return self.paths[0]

    @property
    def env(self) -> str:
        """The environment, or all of them."""
        return ", ".join(dict.fromkeys(problem.env for problem in self.scores))

    @cached_property
    def normalized(self) -> dict[str, Estimate]:
        """The aggregates of normalized scores over the problems; empty where a problem has no reference."""
        scores = normalized_scores(self)
        return aggregates(scores) if scores else {}

    @property
    def seeds(self) -> int:
        """Scores in all."""
        return sum(map(len, self.scores.values()))

    def as_dict(self) -> dict[str, Any]:
        """The facts for `--json`."""
        return {
            "label": self.label,
            "name": self.name,
            "path": self.path,
            "paths": list(self.paths),
            "env": self.env,
            "seeds": self.seeds,
            "frames": self.frames,
            "seconds": self.seconds,
            "mean": None if self.mean is None else asdict(self.mean),
            "iqm": None if self.iqm is None else asdict(self.iqm),
            "normalized": {name: asdict(estimate) for name, estimate in self.normalized.items()},
            "cost": None if self.cost is None else self.cost.as_dict(),
            "search": None if self.search is None else {"trials": self.search[0], "cost": self.search[1].as_dict()},
        }


@dataclass(frozen=True)
class Pair:
    """Two sides: the comparison on `tasks` problems, or the `reason` why there is none.

    `difference` is of their means, where they have one problem, or the one that was `asked` about; `seeds` is how many
    for each would show it.
    """

    a: str
    b: str
    comparison: Comparison | None
    reason: str | None
    tasks: int
    difference: float | None = None
    seeds: int | None = None
    asked: bool = False

    @property
    def verdict(self) -> str:
        """What may be said, with the labels of the sides."""
        if self.comparison is None:
            return f"not compared: {self.reason}"
        words = self.comparison.verdict
        return {"A better": f"{self.a} better", "B better": f"{self.b} better"}.get(words, words)

    def as_dict(self) -> dict[str, Any]:
        """The facts for `--json`."""
        found = (
            {"probability": None, "p": None, "comparisons": 0} if self.comparison is None else self.comparison.as_dict()
        )
        return {
            "a": self.a,
            "b": self.b,
            **found,
            "verdict": self.verdict,
            "tasks": self.tasks,
            "seeds_needed": self.seeds,
        }


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
        from operant.report.compare_text import render

        return render(self)


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


def sides_of(paths: Sequence[Path], by: str | None, price: float | None = None) -> list[Side]:
    """The sides in the order given: each trial, or each value of a setting on the problems that all of them have."""
    trials = [read_trial(Path(path)) for path in paths]
    if by is None:
        return [_side(label(number), trial.name, [trial], price) for number, trial in enumerate(trials)]
    sides = [_side(label(number), *group, price) for number, group in enumerate(group_by(trials, by))]
    shared = set.intersection(*(set(side.scores) for side in sides))
    return [_on(side, shared, price) for side in sides] if shared else sides


def _on(side: Side, problems: set[Problem], price: float | None) -> Side:
    """The side without its trials on other problems."""
    left_out = ", ".join(sorted(problem.env for problem in side.scores if problem not in problems))
    if not left_out:
        return side
    kept = [trial for trial, problem in zip(side.trials, side.problems, strict=True) if problem in problems]
    note = f"{side.label}: left out, as not all sides have it: {left_out}"
    fewer = _side(side.label, side.name, kept, price)
    return replace(fewer, notes=(*fewer.notes, note))


def label(number: int) -> str:
    """A, B, ... Z, AA, AB, ..."""
    letter = chr(ord("A") + number % 26)
    return letter if number < 26 else label(number // 26 - 1) + letter


def _side(letter: str, name: str, trials: Sequence[TrialRecord], price: float | None) -> Side:
    summaries = [summarise_record(trial) for trial in trials]
    problems = [Problem.of(trial, summary.score_from) for trial, summary in zip(trials, summaries, strict=True)]
    scores: dict[Problem, list[float]] = {problem: [] for problem in problems}
    for problem, summary in zip(problems, summaries, strict=True):
        scores[problem] += _scores(summary)
    alone = next(iter(scores.values())) if len(scores) == 1 else None
    return Side(
        label=letter,
        name=name,
        paths=tuple(shown(trial.path) for trial in trials),
        scores=scores,
        frames=max(summary.frames for summary in summaries),
        seconds=max(summary.seconds for summary in summaries),
        mean=None if alone is None else mean_interval(alone),
        iqm=None if alone is None else iqm_interval(alone),
        cost=_cost(trials, price),
        search=search_cost(trials[0].path) if len(trials) == 1 and _of_search(trials[0]) else None,
        trials=tuple(trials),
        problems=tuple(problems),
        notes=tuple(note for summary in summaries for note in summary.notes),
    )


def _scores(summary: TrialSummary) -> list[float]:
    scores = [row.score for row in summary.sessions if row.score is not None]
    if not scores:
        place = shown(summary.path)
        raise UsageError("no seed of this trial was evaluated yet", place=place, remedy=f"operant resume {place}")
    return scores


def normalized_scores(side: Side) -> dict[str, Floats]:
    """The normalized scores of each problem, by what random play scored in these very runs; empty without reference."""
    played = {str(trial.spec.get("env", {}).get("name")): trial.anchors.get("random") for trial in side.trials}
    found = {}
    for number, (problem, values) in enumerate(side.scores.items()):
        reference = reference_of(problem.env, played.get(problem.env))
        if reference is None:
            return {}
        found[f"{number} {problem.env}"] = normalized(values, reference)
    return found


def _of_search(trial: TrialRecord) -> bool:
    return (trial.path.parent / SEARCH_FILE).is_file()


def _cost(trials: Sequence[TrialRecord], price: float | None) -> Cost | None:
    """What the trials cost together; None where one has no account."""
    costs = [Ledger.of(trial.path, price).cost(trial.path) for trial in trials]
    known = [cost for cost in costs if cost is not None]
    return None if len(known) < len(costs) else added(known)


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
