"""Figures of a search: how much each setting mattered, and every trial as a line through its settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from operant.report.plots import COLOURS, PNG_DPI
from operant.report.search_table import TrialRow, read_search, search_rows
from operant.run.layout import REPORT_FOLDER

IMPORTANCE_FILE = "search_importance.png"
PARALLEL_FILE = "search_parallel_coordinates.png"


def draw_search(place: Path, weights: Mapping[str, float], method: str) -> list[Path]:
    """Draw both figures into the search's report folder; none while fewer than two trials have a score."""
    rows = [row for row in search_rows(place) if row.score is not None]
    if len(rows) < 2:
        return []
    folder = place / REPORT_FOLDER
    folder.mkdir(exist_ok=True)
    log_scaled = (read_search(place) or {}).get("log_scaled", [])
    files = []
    if weights:
        _importance(weights, method).savefig(folder / IMPORTANCE_FILE, dpi=PNG_DPI)
        files.append(folder / IMPORTANCE_FILE)
    _parallel(rows, log_scaled).savefig(folder / PARALLEL_FILE, dpi=PNG_DPI)
    return [*files, folder / PARALLEL_FILE]


def _importance(weights: Mapping[str, float], method: str) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 1.2 + 0.45 * len(weights)), layout="constrained")
    axes = figure.add_subplot()
    names = list(weights)[::-1]
    axes.barh(names, [weights[name] for name in names], color=COLOURS[0])
    axes.set_xlabel(f"importance for the score ({method})")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _parallel(rows: Sequence[TrialRow], log_scaled: Sequence[str]) -> Any:
    """One vertical axis for each setting and one for the score, each from its lowest to its highest value.

    Where there are forks, a first axis has the frames at which trials began, so that settings can be seen to drift.
    """
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    paths = list(rows[0].settings)
    forks = sum(row.parent is not None for row in rows)
    scores = np.array([row.score.point for row in rows if row.score is not None])
    axes_data = [_axis([row.forked_at for row in rows], False)] if forks else []
    axes_data += [_axis([row.settings[path] for row in rows], path in log_scaled) for path in paths]
    axes_data.append(_axis(list(scores), False))
    figure = Figure(figsize=(2.0 + 1.6 * len(axes_data), 4.4), layout="constrained")
    axes = figure.add_subplot()
    heights = np.array([positions for positions, _ in axes_data])
    order = np.argsort(scores, kind="stable")
    shades = colormaps["viridis"](heights[-1])
    for number in order:
        axes.plot(range(len(axes_data)), heights[:, number], color=shades[number], linewidth=1.2, alpha=0.8)
    for x, (_, labels) in enumerate(axes_data):
        axes.axvline(x, color="0.7", linewidth=0.8, zorder=0)
        for y, text in labels:
            axes.annotate(text, (x, y), xytext=(4, 0), textcoords="offset points", fontsize=7, va="center")
    names = [*(["begun at frame"] if forks else []), *(path.rpartition(".")[2] for path in paths), "score"]
    axes.set_xticks(range(len(axes_data)), names, fontsize=9)
    axes.set_yticks([])
    title = f"{len(rows)} trials{f', {forks} of them forks' if forks else ''}; brighter is better"
    axes.set_title(title, loc="left", fontsize=10)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    return figure


def _axis(values: list[Any], is_log: bool) -> tuple[list[float], list[tuple[float, str]]]:
    """The height of each value from 0 to 1, and labels at their heights."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        numbers = np.log(values) if is_log else np.array(values, dtype=float)
        low, high = float(numbers.min()), float(numbers.max())
        spread = high - low or 1.0
        ends = [(0.0, _number(min(values))), (1.0, _number(max(values)))]
        return list((numbers - low) / spread), ends if high > low else ends[:1]
    texts = [json.dumps(value) for value in values]
    known = sorted(set(texts))
    heights = {text: number / max(1, len(known) - 1) for number, text in enumerate(known)}
    return [heights[text] for text in texts], [(height, text) for text, height in heights.items()]


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
