"""Stored outcomes as a table in Markdown, put between two marks of a file that may hold other text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from operant.benchmark.outcome import SCORES, Outcome, read_outcome
from operant.benchmark.suite import Cell, Suite
from operant.errors import UsageError
from operant.run.disk import write_text

BEGIN, END = "<!-- {}: begin ({}) -->", "<!-- {}: end -->"
FILE = "RESULTS.md"
COLUMNS = ("environment", "algorithm", "frames", "seeds", "greedy score", "sampled score", "total_reward_ma")
PUBLISHED_COLUMNS = ("published", "met")
LEGEND = """\
The greedy score is the final policy's mean return, the sampled score the same policy's when it draws its actions as in
training, and `total_reward_ma` the mean training return over the last frames. In brackets: 95 % bootstrap intervals
over seeds.
"""
SHORT = {"greedy": "score", "total_reward_ma": "ma"}


def write_results(suite: Suite, folder: Path) -> Path:
    """Write the suite's table into `RESULTS.md` of the folder, from the outcomes that lie there."""
    file, command = folder / FILE, f"operant bench {suite.name}"
    begin, end = BEGIN.format(suite.name, command), END.format(suite.name)
    text = file.read_text(encoding="utf-8") if file.is_file() else "# Results\n"
    if begin not in text:
        text = f"{text.rstrip()}\n\n{begin}\n{end}\n"
    write_text(file, replaced(text, begin, end, f"{section(suite, folder)}\n{LEGEND}"))
    return file


def section(suite: Suite, folder: Path) -> str:
    """The suite's heading and table."""
    return f"### {suite.title}: `operant bench {suite.name}`\n\n{table(suite.cells, folder)}"


def table(cells: Sequence[Cell], folder: Path) -> str:
    """A row for every cell that was run, and the names of those that were not."""
    found = {cell.name: read_outcome(folder, cell.name) for cell in cells}
    ran = [outcome for outcome in found.values() if outcome is not None]
    missing = [f"`{name}`" for name, outcome in found.items() if outcome is None]
    if not ran:
        return f"Not run: any of its {len(missing)} cells.\n"
    has_figures = any(outcome.get("published") is not None for outcome in ran)
    columns = (*COLUMNS, *(PUBLISHED_COLUMNS if has_figures else ()))
    lines = [heading(columns), *(row(outcome, has_figures) for outcome in ran)]
    return "".join(lines) + (f"\nNot run: {', '.join(missing)}.\n" if missing else "")


def row(outcome: Outcome, has_figures: bool = True) -> str:
    """One line of a table; a budget below the suite's is told and not called met."""
    frames = f"{outcome['frames']:,}" + ("" if full(outcome) else f" of {outcome['published_frames']:,}")
    shown = [interval(outcome[kind]) for kind in SCORES]
    figures = [figure(outcome["published"]) if outcome["published"] is not None else "", met(outcome)]
    first = [outcome["env"], f"`{outcome['cell']}`", frames, seeds(outcome)]
    return line([*first, *shown, *(figures if has_figures else [])])


def seeds(outcome: Outcome) -> str:
    """The seeds as `0 to 3`, or how many there were where the file is from before they were stored."""
    if not (each := outcome.get("seeds")):
        return f"{outcome['greedy']['n']} seeds"
    if len(each) > 2 and each == list(range(each[0], each[-1] + 1)):
        return f"{each[0]} to {each[-1]}"
    return ", ".join(map(str, each))


def heading(columns: Sequence[str]) -> str:
    """The first two lines of a table in Markdown."""
    return line(columns) + "|" + "---|" * len(columns) + "\n"


def line(cells: Sequence[str]) -> str:
    """One line of Markdown's tables."""
    return f"| {' | '.join(cells)} |\n"


def met(outcome: Outcome) -> str:
    """Which measures reach the published figure: the score alone, or both where it is a `total_reward_ma`."""
    if outcome.get("published") is None:
        return ""
    asked = ["greedy"] if outcome.get("measure") == "score" else ["greedy", "total_reward_ma"]
    reached = [SHORT[kind] for kind in asked if outcome[kind] and outcome[kind]["point"] >= outcome["published"]]
    if not full(outcome):
        return f"reduced budget, {'reached by ' + ' and '.join(reached) if reached else 'not reached'}"
    return "yes" if len(reached) == len(asked) else f"{reached[0]} only" if reached else "no"


def full(outcome: Outcome) -> bool:
    """Whether the cell had the suite's budget."""
    return outcome["frames"] >= outcome["published_frames"]


def interval(estimate: dict[str, Any] | None) -> str:
    """A point with its interval over seeds."""
    if estimate is None:
        return "-"
    point = figure(estimate["point"])
    return point if estimate["low"] is None else f"{point} [{figure(estimate['low'])}, {figure(estimate['high'])}]"


def figure(value: float) -> str:
    """A score with as many digits as its size asks for."""
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:,.1f}"


def replaced(text: str, begin: str, end: str, part: str) -> str:
    """The text with what stands between the two marks replaced."""
    before, found, rest = text.partition(begin)
    if not found or end not in rest:
        raise UsageError(f"the file has no part between {begin} and {end}", remedy="put the two marks into it")
    return f"{before}{begin}\n\n{part}\n{end}{rest.partition(end)[2]}"
