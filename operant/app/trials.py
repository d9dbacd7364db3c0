"""A hyperparameter search for the page: its trials, how much each setting mattered, the axes of its picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from operant.report.search_importance import importance
from operant.report.search_table import TrialRow, ranked, read_search, search_rows, settings_cells, short_names


def search_details(path: Path) -> dict[str, Any]:
    """The trials, best first, and what each axis of the parallel coordinates is; no trials where there is no search."""
    document = read_search(path)
    if document is None:
        return {"trials": [], "settings": [], "rungs": [], "log_scaled": []}
    rows = search_rows(path)
    names = short_names(list(rows[0].settings)) if rows else {}
    order = [*ranked(rows), *(row for row in rows if row.score is None)]
    return {
        "trials": [_trial(row) for row in order],
        "settings": [{"path": path, "name": name} for path, name in names.items()],
        "rungs": document.get("rungs", []),
        "log_scaled": document.get("log_scaled", []),
        "state": document.get("state"),
    }


def importance_details(path: Path) -> dict[str, Any]:
    """How much each setting mattered, and by which method; a forest may take seconds, so the page asks for it last."""
    weights, method = importance(search_rows(path))
    return {"importance": weights, "method": method}


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
