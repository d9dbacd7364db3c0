"""`operant.bench`: train the cells of a suite, write their results, compare them with earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from operant.benchmark.gate import CellComparison, compare_with
from operant.benchmark.load import load_suite
from operant.benchmark.outcome import Outcome
from operant.benchmark.plan import ResultsFolder, plan_cells, require_all
from operant.benchmark.table import write_results
from operant.benchmark.training import CellTraining
from operant.errors import UsageError
from operant.run.layout import shown
from operant.store.backend import Report

FOLDER = "bench"


@dataclass(frozen=True)
class BenchResult:
    """What a suite gave: an outcome for each cell, and how each compares with results stored earlier."""

    suite: str
    folder: Path
    outcomes: list[Outcome]
    comparisons: list[CellComparison] = field(default_factory=list)

    @property
    def worse(self) -> list[str]:
        """The cells that are worse than stored."""
        return [each.cell for each in self.comparisons if each.verdict == "worse"]

    def as_dict(self) -> dict[str, Any]:
        """The same facts for `--json`."""
        return {
            "suite": self.suite,
            "out": shown(self.folder),
            "cells": self.outcomes,
            "comparisons": [each.as_dict() for each in self.comparisons],
            "worse": self.worse,
        }


def bench(
    suite: str | Path,
    /,
    *,
    cells: Sequence[str] = (),
    seeds: int | None = None,
    frames: int | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    against: str | Path | None = None,
    speed: bool = False,
    add: bool = False,
    root: str | Path = "runs",
    overrides: Sequence[str] = (),
    report: Report = print,
    **settings: Any,
) -> BenchResult:
    """Train the cells of a suite, a built-in name or a file, and return what each gave.

    `cells` are names or patterns; `seeds` and `frames` replace the suite's numbers; `jobs` sessions train at once, by
    default one per core. Outcomes, one JSON file a cell, and `RESULTS.md` go to `out` (`bench/SUITE`); the same call
    goes on where it was. `against` is a folder of earlier outcomes to compare with; `speed` tells frames per second.
    With `add` the seeds join those of the results in `out`, which must be of the same settings and other seeds.
    `settings` are those of `train`, and `overrides` the same in the form of `-s`; `report` gets a line at a time.
    Raises `StoppedError` after Ctrl-C and `RunError` if a session failed, once the others have ended.
    """
    chosen = load_suite(str(suite))
    folder = Path(out) if out is not None else Path(FOLDER) / chosen.name
    _check_against(folder, against)
    planned = plan_cells(chosen, cells, seeds=seeds, frames=frames, overrides=overrides, settings=settings)
    require_all(planned)
    training = CellTraining(chosen.name, planned, ResultsFolder(folder, Path(root), chosen.name), report, add=add)
    training.run(jobs)
    if training.outcomes:
        report(f"results: {shown(write_results(chosen, folder))}")
    training.raise_unfinished()
    results = [training.outcomes[each.cell.name] for each in planned]
    compared = compare_with(Path(against), results) if against is not None else []
    if compared:
        report(f"against {shown(Path(str(against)))}, at the 95 % level over all cells together:")
        _tell(compared, speed, report)
    return BenchResult(chosen.name, folder, results, compared)


def _check_against(folder: Path, against: str | Path | None) -> None:
    if against is None:
        return
    place = Path(against)
    if not place.is_dir():
        raise UsageError(
            "there is no such folder of results", place=str(against), remedy="operant bench SUITE --out DIR"
        )
    if place.resolve() == folder.resolve():
        cause = "the new results would replace those that they are compared with"
        raise UsageError(cause, place=str(against), remedy="--out DIR    (another folder for the new ones)")


def _tell(compared: Sequence[CellComparison], speed: bool, report: Report) -> None:
    for each in compared:
        report(f"  {each.text()}")
    if speed:
        report("speed, which depends on what else the machine does:")
        for each in compared:
            report(f"  {each.speed_text()}")
