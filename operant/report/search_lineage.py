"""Where a trial of a population comes from: its ancestors, and the settings with which its weights were trained."""

from __future__ import annotations

from collections.abc import Sequence

from operant.report.formatting import columns
from operant.report.search_table import TrialRow, settings_cells, short_names


def lineage(rows: Sequence[TrialRow], trial: int) -> list[TrialRow]:
    """A trial after its ancestors, the first of them first."""
    known = {row.trial: row for row in rows}
    found: list[TrialRow] = []
    at: int | None = trial
    while at is not None and at in known:
        found.insert(0, known[at])
        at = known[at].parent
    return found


def schedule_lines(rows: Sequence[TrialRow], trial: int) -> list[str]:
    """The schedule of a trial: from which frame on which settings, in which trial; empty for one that is no fork."""
    stages = lineage(rows, trial)
    if len(stages) < 2:
        return []
    head = ["from frame", "trial", *short_names(list(stages[0].settings)).values()]
    cells = [[f"{row.forked_at:,}", str(row.trial), *settings_cells(row)] for row in stages]
    return columns([head, *cells], right={0, 1})
