"""The sides of a comparison, each one trial or all that share a value of a setting, and pairs of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from operant.errors import UsageError
from operant.report.aggregates import aggregates, iqm_interval
from operant.report.cost import Cost, Ledger, added, search_cost
from operant.report.improvement import Comparison
from operant.report.normalize import normalized, reference_of
from operant.report.problems import Problem, group_by
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
