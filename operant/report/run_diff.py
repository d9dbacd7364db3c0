"""Two runs or specs held against each other: in what they differ, and what each came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from operant.report.differences import NOT_THERE, Difference, Rank, differences
from operant.report.formatting import columns, duration
from operant.report.origin import Origin
from operant.report.summary import TrialSummary, summarise

HEADINGS = {
    Rank.PROBLEM: "problem and algorithm",
    Rank.LEARNING: "settings that touch learning",
    Rank.SEED: "seeds",
    Rank.CODE: "code",
    Rank.PACKAGE: "packages that compute",
    Rank.ARITHMETIC: "arithmetic",
    Rank.MEASURING: "evaluation",
    Rank.PYTHON: "Python",
    Rank.HARDWARE: "hardware",
    Rank.OTHER_PACKAGE: "other packages",
    Rank.COSMETIC: "no effect on learning",
    Rank.ENVIRONMENT: "environment variables",
}
MOST_OF_MINOR = 10


@dataclass(frozen=True)
class Side:
    """One of the two: its origin, and for a run its directory and what it came to."""

    origin: Origin
    path: Path | None = None

    def result(self) -> TrialSummary | None:
        """The summary of a run; None for a spec."""
        return None if self.path is None else summarise(self.path)


@dataclass(frozen=True)
class RunDiff:
    """What `operant diff` says; `same_run` where both names stand for one directory."""

    a: Side
    b: Side
    differences: tuple[Difference, ...]

    @property
    def same_run(self) -> bool:
        """Whether both are one and the same run."""
        return self.a.path is not None and self.a.path == self.b.path

    def as_dict(self) -> dict[str, Any]:
        """Everything, for `--json`."""
        return {
            "a": _side_document(self.a),
            "b": _side_document(self.b),
            "same_run": self.same_run,
            "differences": [each.as_dict() for each in self.differences],
        }

    def __str__(self) -> str:
        return "\n".join(render(self))


def diff_sides(a: Side, b: Side) -> RunDiff:
    """Hold two sides against each other."""
    return RunDiff(a, b, tuple(differences(a.origin, b.origin)))


def render(diff: RunDiff) -> list[str]:
    """The difference in plain lines, what most likely matters first."""
    if diff.same_run:
        return [f"A and B are the same run: {diff.a.origin.name}"]
    lines = [f"A  {diff.a.origin.name}", f"B  {diff.b.origin.name}"]
    other_problem = any(each.rank == Rank.PROBLEM for each in diff.differences)
    for rank, group in groupby(diff.differences, key=lambda each: each.rank):
        found = list(group)
        shown = _apart(found) if rank == Rank.LEARNING and other_problem else _group(rank, found)
        lines += ["", HEADINGS[rank], *shown]
    if not diff.differences:
        lines += ["", f"no difference in {_compared(diff)}"]
    return [*lines, *_results(diff)]


def difference_lines(found: Sequence[Difference]) -> list[str]:
    """Each difference on a line, `name  a -> b`, with changed lines of code below it."""
    heads = columns([[each.name, f"{each.a} -> {each.b}"] for each in found]) if found else []
    return [line for head, each in zip(heads, found, strict=True) for line in (f"  {head}", *_code(each))]


def _group(rank: Rank, found: list[Difference]) -> list[str]:
    if rank < Rank.OTHER_PACKAGE or len(found) <= MOST_OF_MINOR:
        return difference_lines(found)
    return [*difference_lines(found[:MOST_OF_MINOR]), f"  and {len(found) - MOST_OF_MINOR} more; --json lists them all"]


def _apart(found: list[Difference]) -> list[str]:
    """Settings of two problems or algorithms: those that both have line by line, the others by name."""
    both = [each for each in found if NOT_THERE not in (each.a, each.b)]
    only = {
        "A": [each.name for each in found if each.b == NOT_THERE],
        "B": [each.name for each in found if each.a == NOT_THERE],
    }
    named = [f"  only {letter} has {', '.join(names)}" for letter, names in only.items() if names]
    return [*difference_lines(both), *named]


def _code(found: Difference) -> list[str]:
    return [f"      {line}" for line in found.lines]


def _compared(diff: RunDiff) -> str:
    both = diff.a.origin.is_run and diff.b.origin.is_run
    return "settings, seeds, code, packages, arithmetic and machine" if both else "settings and seeds"


def _results(diff: RunDiff) -> list[str]:
    """What the runs came to; nothing where neither was run."""
    found = [side.result() for side in (diff.a, diff.b)]
    if not any(found):
        return []
    rows = [["", "A", "B"]]
    rows.append(["score", *("-" if each is None or each.score is None else each.score.text() for each in found)])
    rows.append(["state", *("not run" if each is None else each.state for each in found)])
    rows.append(["frames per seed", *("-" if each is None else f"{each.frames:,}" for each in found)])
    rows.append(["training time", *("-" if each is None else duration(each.seconds) for each in found)])
    hint = ["which is better: operant compare A B"] if all(each and each.score for each in found) else []
    return ["", "result", *(f"  {line}" for line in columns(rows)), *hint]


def _side_document(side: Side) -> dict[str, Any]:
    result = side.result()
    return {
        "name": side.origin.name,
        "is_run": side.origin.is_run,
        "seeds": list(side.origin.seeds),
        "state": None if result is None else result.state,
        "score": None if result is None or result.score is None else result.score.as_dict(),
        "frames": None if result is None else result.frames,
        "seconds": None if result is None else result.seconds,
    }
