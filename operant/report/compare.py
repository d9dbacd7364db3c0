"""Which of two trials is better: scores over seeds, a probability with its interval, and the words it allows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from operant.errors import UsageError
from operant.report.stats import (
    NO_DIFFERENCE,
    Comparison,
    Estimate,
    iqm_interval,
    probability_of_improvement,
    seeds_needed,
)
from operant.report.summary import TrialSummary, summarise
from operant.run.layout import shown


@dataclass(frozen=True)
class Side:
    """One trial of a comparison: its scores over seeds as mean and interquartile mean."""

    name: str
    path: str
    env: str | None
    frames: int
    seconds: float
    mean: Estimate
    iqm: Estimate


@dataclass(frozen=True)
class Verdict:
    """Two trials held against each other; `seeds` is how many per side would show this difference, None if unknown."""

    a: Side
    b: Side
    comparison: Comparison
    seeds: int | None
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        return {
            "a": asdict(self.a),
            "b": asdict(self.b),
            **self.comparison.as_dict(),
            "seeds_needed": self.seeds,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return render(self)


def compare(first: Path, second: Path) -> Verdict:
    """Compare two trials by the scores of their seeds; both must have been evaluated."""
    summaries = summarise(first), summarise(second)
    scores_a, scores_b = (_scores(summary) for summary in summaries)
    a, b = (_side(summary, scores) for summary, scores in zip(summaries, (scores_a, scores_b), strict=True))
    spread = scores_a if len(scores_a) >= len(scores_b) else scores_b
    return Verdict(
        a=a,
        b=b,
        comparison=probability_of_improvement(scores_a, scores_b),
        seeds=seeds_needed(spread, a.mean.point - b.mean.point),
        notes=tuple(_notes(*summaries)),
    )


def render(verdict: Verdict) -> str:
    """The comparison in plain lines."""
    a, b = verdict.a, verdict.b
    lines = [
        f"{letter}  {side.name}  {side.path}\n"
        f"   score {side.mean.text()}, interquartile mean {side.iqm.text()}, {side.frames:,} frames per seed"
        for letter, side in (("A", a), ("B", b))
    ]
    lines.append(verdict.comparison.text())
    if verdict.seeds is not None and verdict.comparison.verdict == NO_DIFFERENCE:
        lines.append(f"a difference of {abs(a.mean.point - b.mean.point):.4g} would need {verdict.seeds} seeds each")
    return "\n".join([*lines, *(f"note: {note}" for note in verdict.notes)])


def _scores(summary: TrialSummary) -> list[float]:
    scores = [row.score for row in summary.sessions if row.score is not None]
    if not scores:
        place = shown(summary.path)
        raise UsageError("no seed of this trial was evaluated yet", place=place, remedy=f"operant resume {place}")
    return scores


def _side(summary: TrialSummary, scores: list[float]) -> Side:
    assert summary.score is not None, "a trial with scores has their mean"
    return Side(
        name=summary.name,
        path=shown(summary.path),
        env=summary.env,
        frames=summary.frames,
        seconds=summary.seconds,
        mean=summary.score,
        iqm=iqm_interval(scores),
    )


def _notes(a: TrialSummary, b: TrialSummary) -> list[str]:
    """What makes the two less comparable than they look."""
    notes = [*a.notes, *b.notes]
    if a.env != b.env:
        notes.append(f"the environments differ: {a.env} and {b.env}")
    if a.frames != b.frames:
        notes.append(f"the frames per seed differ: {a.frames:,} and {b.frames:,}")
    return notes
