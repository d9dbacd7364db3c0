"""Learning curves as files: SVG and PNG for people, CSV of exactly what was drawn for everything else.

The thick line is the mean over seeds and the band its bootstrap interval, both only where every seed
has data; thin lines are the seeds themselves. One seed has a line and no band.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from operant.errors import UsageError
from operant.report.align import Curve, align
from operant.report.formatting import compact
from operant.report.read import TrialRecord, read_trial
from operant.report.stats import Floats, mean_band
from operant.run.layout import shown

Axis = Literal["frames", "seconds", "updates", "episodes"]
AXES: tuple[str, ...] = get_args(Axis)
BAND_RESAMPLES = 2000
SIZE_INCHES = (7.2, 4.4)
PNG_DPI = 160
# Okabe and Ito's palette: distinguishable with every colour vision, and in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D1F")
DASHES = ("solid", "dashed", "dashdot", "dotted")
Y_LABELS = {"train/return": "return in training", "eval/score": "greedy return in evaluation"}
KEY = "mean, 95 % bootstrap interval, each seed"
X_LABELS = {"frames": "frames", "seconds": "training time (s)", "updates": "optimiser steps", "episodes": "episodes"}


@dataclass(frozen=True)
class Line:
    """One trial as it is drawn: each seed, and the mean with its band (None for one seed)."""

    label: str
    seeds: tuple[tuple[str, Curve], ...]
    mean: Curve
    low: Floats | None
    high: Floats | None


def plot_trials(
    trials: Sequence[Path], out: Path, metric: str = "train/return", x: Axis = "frames", name: str | None = None
) -> list[Path]:
    """Draw one curve per trial into `out`; returns the SVG, PNG and CSV files, named after metric and axis.

    `UsageError` when the axis is unknown or when no session has the metric, naming those there are.
    """
    if x not in AXES:
        raise UsageError(f"there is no axis {x!r}", remedy=f"one of: {', '.join(AXES)}")
    records = [read_trial(Path(path)) for path in trials]
    drawn = [trial for trial in records if any(len(curve.x) for curve in trial.curves(metric, x))]
    if not drawn:
        raise _no_metric(records, metric)
    lines = [trial_line(label, trial, metric, x) for label, trial in zip(_labels(drawn), drawn, strict=True)]
    stem = name or f"{re.sub(r'[^A-Za-z0-9]+', '_', metric)}_by_{x}"
    out.mkdir(parents=True, exist_ok=True)
    files = [out / f"{stem}.svg", out / f"{stem}.png", out / f"{stem}.csv"]
    _save_figure(_figure(lines, _title(drawn), metric, x), files[0], files[1])
    _save_csv(lines, files[2], metric, x)
    return files


def curve_svg(trial: Path, metric: str) -> str:
    """The curve of a trial as SVG text, for a page; empty while there is nothing to draw."""
    from io import StringIO

    record = read_trial(trial)
    if not any(len(curve.x) for curve in record.curves(metric)):
        return ""
    text = StringIO()
    _figure([trial_line(record.name, record, metric, "frames")], _title([record]), metric, "frames").savefig(
        text, format="svg", metadata={"Date": None}
    )
    return text.getvalue()[text.getvalue().index("<svg") :]


def trial_line(label: str, trial: TrialRecord, metric: str, x: str) -> Line:
    """What is drawn of a trial: its seeds, their mean where all have a value, and the interval of that."""
    named = [(f"session_{session.index}", session.curve(metric, x)) for session in trial.sessions]
    seeds = tuple((name, curve) for name, curve in named if len(curve.x))
    aligned = align([curve for _, curve in seeds])
    values = aligned.values[:, aligned.shared]
    mean = Curve(aligned.x[aligned.shared], values.mean(axis=0))
    if len(seeds) == 1 or not len(mean.x):
        return Line(label, seeds, mean, None, None)
    low, high = mean_band(values, resamples=BAND_RESAMPLES)
    return Line(label, seeds, mean, low, high)


def _labels(trials: Sequence[TrialRecord]) -> list[str]:
    """The shortest names that differ: the spec, then with its stamp, then with the trial."""
    depths = (
        [trial.name for trial in trials],
        [f"{trial.name} {trial.path.parent.name}" for trial in trials],
        [f"{trial.name} {trial.path.parent.name} {trial.path.name}" for trial in trials],
        [shown(trial.path) for trial in trials],
    )
    return next((names for names in depths if len(set(names)) == len(names)), depths[-1])


def _title(trials: Sequence[TrialRecord]) -> str:
    return ", ".join(dict.fromkeys(str(trial.spec.get("env", {}).get("name", trial.name)) for trial in trials))


def _figure(lines: Sequence[Line], title: str, metric: str, x: str) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    figure = Figure(figsize=SIZE_INCHES, layout="constrained")
    axes = figure.add_subplot()
    for number, line in enumerate(lines):
        _draw(axes, line, COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)])
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold")
    axes.set_title(KEY, loc="right", fontsize=8, color="0.45")
    axes.set_xlabel(X_LABELS[x])
    axes.set_ylabel(Y_LABELS.get(metric, metric))
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: compact(value)))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0.01)
    axes.legend(frameon=False, loc="best", fontsize=9)
    return figure


def _draw(axes: Any, line: Line, colour: str, dash: str) -> None:
    """Seeds below, band above them, mean on top."""
    thin = {"color": colour, "alpha": 0.35, "linewidth": 0.7, "markersize": 2, "zorder": 2}
    for _, curve in line.seeds:
        axes.plot(curve.x, curve.y, marker=_marker(curve), **thin)
    if line.low is not None and line.high is not None:
        axes.fill_between(line.mean.x, line.low, line.high, color=colour, alpha=0.2, linewidth=0, zorder=3)
    seeds = len(line.seeds)
    said = f"{line.label}, one seed, no interval" if seeds == 1 else f"{line.label}, {seeds} seeds"
    thick = {"color": colour, "linestyle": dash, "linewidth": 2, "zorder": 4}
    axes.plot(line.mean.x, line.mean.y, label=said, marker=_marker(line.mean), **thick)


def _marker(curve: Curve) -> str:
    """A lone point is invisible as a line."""
    return "o" if len(curve.x) == 1 else ""


def _save_figure(figure: Any, svg: Path, png: Path) -> None:
    """Write both forms; the same data always gives the same bytes of SVG."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "operant", "svg.fonttype": "none"}):
        figure.savefig(svg, metadata={"Date": None})
        figure.savefig(png, dpi=PNG_DPI)


def _save_csv(lines: Sequence[Line], path: Path, metric: str, x: str) -> None:
    """Rows `trial, series, <x>, <metric>, low, high`; series is `mean` or a session."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["trial", "series", x, metric, "low", "high"])
        for line in lines:
            ends = [[None] * len(line.mean.x) if end is None else end for end in (line.low, line.high)]
            for row in zip(line.mean.x, line.mean.y, *ends, strict=True):
                writer.writerow([line.label, "mean", *row])
            for name, curve in line.seeds:
                for row in zip(curve.x, curve.y, strict=True):
                    writer.writerow([line.label, name, *row, None, None])


def _no_metric(records: Sequence[TrialRecord], metric: str) -> UsageError:
    known = sorted({key for trial in records for session in trial.sessions for key in session.metrics() if "/" in key})
    place = ", ".join(shown(trial.path) for trial in records)
    if not known:
        return UsageError("there are no metric rows yet", place=place, remedy="wait for the first row, then plot again")
    return UsageError(f"no session has the metric {metric!r}", place=place, remedy=f"one of: {', '.join(known)}")
