"""A hyperparameter search for the page: its trials, how much each setting mattered, and the axes of its picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from operant.report.search_importance import importance
from operant.report.search_table import TrialRow, ranked, read_search, search_rows, settings_cells, short_names


def search_details(path: Path) -> dict[str, Any]:
    """The trials, best first; importance of the settings; what each axis of the parallel coordinates is.

    Where the folder holds no search, `trials` is empty.
    """
    document = read_search(path)
    if document is None:
        return {"trials": [], "settings": [], "importance": {}, "method": "", "rungs": [], "log_scaled": []}
    rows = search_rows(path)
    weights, method = importance(rows)
    names = short_names(list(rows[0].settings)) if rows else {}
    order = [*ranked(rows), *(row for row in rows if row.score is None)]
    return {
        "trials": [_trial(row) for row in order],
        "settings": [{"path": path, "name": name} for path, name in names.items()],
        "importance": weights,
        "method": method,
        "rungs": document.get("rungs", []),
        "log_scaled": document.get("log_scaled", []),
        "state": document.get("state"),
    }


def _trial(row: TrialRow) -> dict[str, Any]:
    return {
        "trial": row.trial,
        "folder": row.path.name,
        "settings": row.settings,
        "cells": settings_cells(row),
        "score": None if row.score is None else row.score.point,
        "text": "-" if row.score is None else row.score.text() if row.score.n > 1 else row.score.text().split(" ")[0],
        "rung": row.rung,
        "frames": row.frames,
        "state": row.state,
        "parent": row.parent,
        "forked_at": row.forked_at,
    }
