"""How a search ended, as text or as JSON: the ranking, what mattered, where the figures are, what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from operant.cli.output import aside, plural

MOST_ROWS = 30


def search_ending(place: Path) -> list[str]:
    """The lines after a search, and of `operant show`."""
    from operant.report.cost import cost_of
    from operant.report.search_lineage import schedule_lines
    from operant.report.search_table import ranked, read_search, render_search, search_rows
    from operant.run.layout import shown

    rows, document = search_rows(place), read_search(place) or {}
    lines = ["", *render_search(rows, document.get("rungs", []), MOST_ROWS)]
    frames, forks = sum(row.own_frames for row in rows), sum(row.parent is not None for row in rows)
    is_population = document.get("scheduler") == "pbt"
    and_forks = f" and {plural(forks, 'fork')}" if is_population else ""
    lines += ["", f"{len(rows) - forks} of {document.get('max_trial')} trials{and_forks}, {frames:,} frames in all"]
    cost = cost_of(place)
    lines += [] if cost is None else [f"cost of all trials: {cost.text()}"]
    if not ranked(rows):
        return lines
    best = ranked(rows)[0]
    schedule = schedule_lines(rows, best.trial)
    if schedule:
        lines += ["", f"the settings of trial {best.trial}, the best, are a schedule:", *schedule, ""]
    weights, method = _importance(place)
    if weights:
        said = ", ".join(f"{path.rpartition('.')[2]} {weight:.2f}" for path, weight in weights.items())
        lines.append(f"importance ({method}): {said}")
    lines += [f"figure: {shown(path)}" for path in _figures(place, weights, method)]
    name, more = shown(place), 2 * int(document.get("max_trial", len(rows)))
    wider = [] if is_population else [f"  operant search {name} --trials {more}    (more trials; these count)"]
    return [
        *lines,
        "",
        "next:",
        f"  operant search best {name} --write best.yaml",
        f"  operant show {shown(best.path)}",
        *wider,
    ]


def search_document(place: Path) -> dict[str, Any]:
    """The same for `--json`."""
    from operant.report.cost import cost_of
    from operant.report.search_table import ranked, read_search, search_rows
    from operant.run.layout import shown

    rows, cost = search_rows(place), cost_of(place)
    weights, method = _importance(place) if ranked(rows) else ({}, "none")
    return {
        "run": shown(place),
        "state": (read_search(place) or {}).get("state"),
        "trials": [row.as_dict() for row in rows],
        "best": ranked(rows)[0].trial if ranked(rows) else None,
        "importance": {"method": method, "weights": weights},
        "cost": None if cost is None else cost.as_dict(),
    }


def _importance(place: Path) -> tuple[dict[str, float], str]:
    from operant.report.search_importance import importance
    from operant.report.search_table import search_rows

    return importance(search_rows(place))


def _figures(place: Path, weights: dict[str, float], method: str) -> list[Path]:
    from operant.report.search_figures import draw_search

    try:
        return draw_search(place, weights, method)
    except Exception as fault:
        # A full disk or a broken plotting library must not hide how the search itself ended.
        aside(f"warning: the figures were not drawn: {fault}")
        return []
