"""Learning curves as files: SVG and PNG for people, CSV of exactly what was drawn for everything else.

The thick line is the mean over seeds and the band its bootstrap interval, both only where every seed
has data; thin lines are the seeds themselves. One seed has a line and no band.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from operant.errors import UsageError
from operant.report.align import Curve, align, increasing
from operant.report.cost import Ledger
from operant.report.formatting import compact
from operant.report.problems import group_by
from operant.report.read import TrialRecord, read_trial
from operant.report.stats import Floats, mean_band
from operant.run.layout import shown

Axis = Literal["frames", "seconds", "updates", "episodes", "tokens", "cost"]
AXES: tuple[str, ...] = get_args(Axis)
BAND_RESAMPLES = 2000
SIZE_INCHES = (7.2, 4.4)
PNG_DPI = 160
MOST_INSIDE = 4
PANEL_INCHES = (4.6, 3.4)
PANELS_ACROSS = 3
LEGEND_COLUMNS = 2
# Okabe and Ito's palette: distinguishable with every colour vision, and in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D1F")
DASHES = ("solid", "dashed", "dashdot", "dotted")
Y_LABELS = {"train/return": "return in training", "eval/score": "greedy return in evaluation"}
KEY = "mean, 95 % bootstrap interval, each seed"
X_LABELS = {
    "frames": "frames",
    "seconds": "training time (s)",
    "updates": "optimizer steps",
    "episodes": "episodes",
    "tokens": "tokens",
    "cost": "cost of each seed ($)",
}


@dataclass(frozen=True)
class Line:
    """One trial or group as it is drawn: each seed, and the mean with its band (None for one seed)."""

    label: str
    seeds: tuple[tuple[str, Curve], ...]
    mean: Curve
    low: Floats | None
    high: Floats | None
    env: str = ""


def plot_trials(
    trials: Sequence[Path],
    out: Path,
    metric: str = "train/return",
    x: Axis = "frames",
    name: str | None = None,
    by: str | None = None,
    price: float | None = None,
) -> list[Path]:
    """Draw one curve per trial, or per value of the setting `by`, into `out`; returns the SVG, PNG and CSV files.

    They are named after metric and axis. `price` is of an hour of a machine, for runs that have none. `UsageError`
    when the axis is unknown, or when no session has the metric or the axis, naming what there is.
    """
    if x not in AXES:
        raise UsageError(f"there is no axis {x!r}", remedy=f"one of: {', '.join(AXES)}")
    records = [read_trial(Path(path)) for path in trials]
    drawn = [trial for trial in records if any(len(curve.x) for curve in trial.curves(metric))]
    if not drawn:
        raise _no_metric(records, metric)
    named = [(label, [trial]) for label, trial in zip(labels(drawn), drawn, strict=True)]
    groups = named if by is None else group_by(drawn, by)
    lines = [_group_line(label, same_env, metric, x, price) for label, group in groups for same_env in _by_env(group)]
    stem = name or f"{re.sub(r'[^A-Za-z0-9]+', '_', metric)}_by_{x}"
    figure = _figure(lines, metric, x)
    return save(figure, out, stem, lambda path: _save_csv(lines, path, metric, x))


def curve_svg(trial: Path, metric: str) -> str:
    """The curve of a trial as SVG text, for a page; empty while there is nothing to draw."""
    from io import StringIO

    record = read_trial(trial)
    if not any(len(curve.x) for curve in record.curves(metric)):
        return ""
    text = StringIO()
    _figure([trial_line(record.name, record, metric, "frames")], metric, "frames").savefig(
        text, format="svg", metadata={"Date": None}
    )
    return text.getvalue()[text.getvalue().index("<svg") :]


def trial_line(label: str, trial: TrialRecord, metric: str, x: str) -> Line:
    """What is drawn of one trial."""
    return _group_line(label, [trial], metric, x, None)


def _group_line(label: str, trials: Sequence[TrialRecord], metric: str, x: str, price: float | None) -> Line:
    """What is drawn of trials: their seeds, the mean where all have a value, and the interval of that."""
    alone = len(trials) == 1
    named = [
        (f"session_{session.index}" if alone else shown(session.path), curve)
        for trial in trials
        for session, curve in zip(trial.sessions, _curves(trial, metric, x, price), strict=True)
    ]
    seeds = tuple((name, curve) for name, curve in named if len(curve.x))
    aligned = align([curve for _, curve in seeds])
    values = aligned.values[:, aligned.shared]
    mean = Curve(aligned.x[aligned.shared], values.mean(axis=0))
    if len(seeds) == 1 or not len(mean.x):
        return Line(label, seeds, mean, None, None, _env(trials[0]))
    low, high = mean_band(values, resamples=BAND_RESAMPLES)
    return Line(label, seeds, mean, low, high, _env(trials[0]))


def _curves(trial: TrialRecord, metric: str, x: str, price: float | None) -> list[Curve]:
    """One curve a session; `UsageError` where the trial has no such axis."""
    if x == "tokens" and not any(session.column("tokens").any() for session in trial.sessions):
        raise UsageError("this run counts no tokens", place=shown(trial.path), remedy="--x frames")
    if x != "cost":
        return trial.curves(metric, x)
    ledger = Ledger.of(trial.path, price)
    curves = [
        increasing(ledger.dollars_at(session.path, session.column("seconds")), session.column(metric))
        for session in trial.sessions
    ]
    if any(len(curve.x) for curve in curves):
        return curves
    if ledger.cost(trial.path) is None:
        raise UsageError("this run kept no account of its cost", place=shown(trial.path), remedy="--x seconds")
    raise UsageError(
        "the price of this run is not known",
        place=shown(trial.path),
        remedy="--price DOLLARS, of an hour of the machine; for new runs -s meta.price_per_hour=DOLLARS",
    )


def labels(trials: Sequence[TrialRecord]) -> list[str]:
    """The shortest names that differ: the spec, then with its stamp, then with the trial."""
    depths = (
        [trial.name for trial in trials],
        [f"{trial.name} {trial.path.parent.name}" for trial in trials],
        [f"{trial.name} {trial.path.parent.name} {trial.path.name}" for trial in trials],
        [shown(trial.path) for trial in trials],
    )
    return next((names for names in depths if len(set(names)) == len(names)), depths[-1])


def _env(trial: TrialRecord) -> str:
    return str(trial.spec.get("env", {}).get("name", trial.name))


def _by_env(trials: Sequence[TrialRecord]) -> list[list[TrialRecord]]:
    """The trials of each environment: returns of different ones have no common mean."""
    envs = dict.fromkeys(map(_env, trials))
    return [[trial for trial in trials if _env(trial) == env] for env in envs]


def _figure(lines: Sequence[Line], metric: str, x: str) -> Any:
    """One panel for each environment; a label has the same colour in all of them."""
    from matplotlib.figure import Figure

    envs, names = list(dict.fromkeys(line.env for line in lines)), list(dict.fromkeys(line.label for line in lines))
    across = min(PANELS_ACROSS, len(envs))
    down = -(-len(envs) // across)
    size = SIZE_INCHES if len(envs) == 1 else (PANEL_INCHES[0] * across, PANEL_INCHES[1] * down)
    figure = Figure(figsize=size, layout="constrained")
    for number, env in enumerate(envs):
        axes = figure.add_subplot(down, across, number + 1)
        inside = [line for line in lines if line.env == env]
        for line in inside:
            place = names.index(line.label)
            _draw(axes, line, COLOURS[place % len(COLOURS)], DASHES[place // len(COLOURS) % len(DASHES)])
        dress(axes, env, KEY if number == across - 1 else "")
        _label(axes, metric if number % across == 0 else "", x)
        add_legend(figure, axes, len(inside), len(envs))
    return figure


def _label(axes: Any, metric: str, x: str) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set_xlabel(X_LABELS[x])
    axes.set_ylabel(Y_LABELS.get(metric, metric))
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: compact(value)))
    axes.xaxis.set_major_locator(MaxNLocator(5))


def dress(axes: Any, heading: str, key: str) -> None:
    """The look of every figure: what it shows on the left, how to read it on the right, no frame, a light grid."""
    axes.set_title(heading, loc="left", fontsize=12, fontweight="bold")
    axes.set_title(key, loc="right", fontsize=8, color="0.45")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0.01)


def add_legend(figure: Any, axes: Any, lines: int, panels: int = 1) -> None:
    """In the panel, or below the figure where there are many lines and one panel, so that it covers nothing."""
    if lines <= MOST_INSIDE or panels > 1:
        axes.legend(frameon=False, loc="best", fontsize=9 if panels == 1 else 7)
        return
    rows = -(-lines // LEGEND_COLUMNS)
    figure.set_size_inches(SIZE_INCHES[0], SIZE_INCHES[1] + 0.22 * rows)
    figure.legend(frameon=False, loc="outside lower left", ncols=LEGEND_COLUMNS, fontsize=8)


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


def save(figure: Any, out: Path, stem: str, save_csv: Callable[[Path], None]) -> list[Path]:
    """Write the SVG, PNG and CSV; the same data always gives the same bytes of SVG."""
    import matplotlib

    out.mkdir(parents=True, exist_ok=True)
    svg, png, table = (out / f"{stem}.{kind}" for kind in ("svg", "png", "csv"))
    with matplotlib.rc_context({"svg.hashsalt": "operant", "svg.fonttype": "none"}):
        figure.savefig(svg, metadata={"Date": None})
        figure.savefig(png, dpi=PNG_DPI)
    save_csv(table)
    return [svg, png, table]


def _save_csv(lines: Sequence[Line], path: Path, metric: str, x: str) -> None:
    """Rows `trial, series, <x>, <metric>, low, high, env`; series is `mean` or a session."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["trial", "series", x, metric, "low", "high", "env"])
        for line in lines:
            ends = [[None] * len(line.mean.x) if end is None else end for end in (line.low, line.high)]
            for row in zip(line.mean.x, line.mean.y, *ends, strict=True):
                writer.writerow([line.label, "mean", *row, line.env])
            for name, curve in line.seeds:
                for row in zip(curve.x, curve.y, strict=True):
                    writer.writerow([line.label, name, *row, None, None, line.env])


def _no_metric(records: Sequence[TrialRecord], metric: str) -> UsageError:
    known = sorted({key for trial in records for session in trial.sessions for key in session.metrics() if "/" in key})
    place = ", ".join(shown(trial.path) for trial in records)
    if not known:
        return UsageError("there are no metric rows yet", place=place, remedy="wait for the first row, then plot again")
    return UsageError(f"no session has the metric {metric!r}", place=place, remedy=f"one of: {', '.join(known)}")
