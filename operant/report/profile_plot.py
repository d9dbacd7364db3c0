"""Performance profiles as files: for each normalized score, the share of runs above it."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from operant.errors import UsageError
from operant.report.plots import COLOURS, DASHES, SIZE_INCHES, add_legend, dress, labels, save
from operant.report.profiles import Profile, performance_profile, profile_scores
from operant.report.sides import Side, normalized_scores, sides_of

STEM = "performance_profile"
KEY = "share of seeds above a score, 95 % bootstrap interval"


def plot_profiles(trials: Sequence[Path], out: Path, by: str | None = None) -> list[Path]:
    """Draw one profile per trial, or per value of the setting `by`; returns the SVG, PNG and CSV files.

    Scores are normalized where all problems have a reference; where there is one problem without, they are as they are.
    """
    sides = sides_of(trials, by)
    tables, is_normalized = _tables(sides)
    at = profile_scores(list(tables), zero_to_one=is_normalized)
    names = [side.name for side in sides] if by else labels([side.trials[0] for side in sides])
    profiles = {name: performance_profile(table, at) for name, table in zip(names, tables, strict=True)}
    counts = [f"{name}, {side.seeds} seeds" for name, side in zip(names, sides, strict=True)]
    heading = ", ".join(dict.fromkeys(side.env for side in sides))
    axis = "normalized score (0 random, 1 reference)" if is_normalized else "score"
    figure = _figure(list(profiles.values()), counts, heading, axis)
    return save(figure, out, STEM, lambda path: _save_csv(profiles, path))


def _tables(sides: Sequence[Side]) -> tuple[list[Mapping[str, Any]], bool]:
    """The scores by task of each side, and whether they are normalized."""
    found = [normalized_scores(side) for side in sides]
    if all(found):
        return list(found), True
    problems = {problem for side in sides for problem in side.scores}
    if len(problems) > 1:
        lacking = sorted({side.env for side, scores in zip(sides, found, strict=True) if not scores})
        raise UsageError(
            f"no reference score is known for {', '.join(lacking)}, so its scores cannot be put beside others",
            remedy="draw the runs of one problem at a time",
        )
    return [{"0": next(iter(side.scores.values()))} for side in sides], False


def _figure(profiles: Sequence[Profile], names: Sequence[str], heading: str, axis: str) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE_INCHES, layout="constrained")
    axes = figure.add_subplot()
    for number, (profile, name) in enumerate(zip(profiles, names, strict=True)):
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
        if profile.low is not None and profile.high is not None:
            axes.fill_between(
                profile.scores, profile.low, profile.high, step="post", color=colour, alpha=0.18, linewidth=0
            )
        axes.step(profile.scores, profile.share, where="post", color=colour, linestyle=dash, linewidth=2, label=name)
    dress(axes, heading, KEY)
    axes.set_xlabel(axis)
    axes.set_ylabel("share of seeds with more")
    axes.set_ylim(0, 1.02)
    add_legend(figure, axes, len(profiles))
    return figure


def _save_csv(profiles: Mapping[str, Profile], path: Path) -> None:
    """Rows `run, score, share, low, high`."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["run", "score", "share", "low", "high"])
        for name, profile in profiles.items():
            ends = [[None] * len(profile.scores) if end is None else end for end in (profile.low, profile.high)]
            writer.writerows([name, *row] for row in zip(profile.scores, profile.share, *ends, strict=True))
