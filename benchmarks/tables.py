"""Writes stored results into `benchmarks/RESULTS.md`: the suites beside published figures, Operant beside its peers.

python -m benchmarks.tables
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import peers
from benchmarks.suite import RESULTS
from benchmarks.suites import SUITES, Cell

DOCUMENT = Path(__file__).parent / "RESULTS.md"
BEGIN, END = "<!-- {}: begin (python -m benchmarks.tables) -->", "<!-- {}: end -->"
HEADINGS = {
    "classic": "Classic control",
    "box2d": "Box2D",
    "mujoco": "MuJoCo",
    "atari": "Atari",
}
COLUMNS = "| environment | algorithm | frames | greedy score | sampled score | total_reward_ma | published | met |\n"
RULE = "|---|---|---|---|---|---|---|---|\n"


def table(cells: list[Cell]) -> str:
    """One suite: a row for every cell that was run, and the names of those that were not."""
    stored = {cell.name: _stored(cell) for cell in cells}
    rows = [row(cell, outcome) for cell in cells if (outcome := stored[cell.name]) is not None]
    missing = [f"`{name}`" for name, outcome in stored.items() if outcome is None]
    shown = COLUMNS + RULE + "".join(rows) if rows else ""
    if not rows and missing:
        return f"Not run: any of its {len(missing)} cells.\n"
    return shown + (f"\nNot run: {', '.join(missing)}.\n" if missing else "")


def row(cell: Cell, outcome: dict[str, Any]) -> str:
    """One line of a table; a budget below the published one is told and not called met."""
    shown = [interval(outcome[kind]) for kind in ("greedy", "sampled", "total_reward_ma")]
    frames = f"{outcome['frames']:,}" + ("" if full(outcome) else f" of {outcome['published_frames']:,}")
    return (
        "| "
        + " | ".join([cell.problem.env, f"`{cell.spec}`", frames, *shown, figure(cell.published), met(outcome)])
        + " |\n"
    )


def met(outcome: dict[str, Any]) -> str:
    """Which of the two measures reach the published figure."""
    reached = [
        word
        for word, kind in (("score", "greedy"), ("ma", "total_reward_ma"))
        if outcome[kind]["point"] >= outcome["published"]
    ]
    words = {0: "no", 1: f"{''.join(reached)} only", 2: "yes"}[len(reached)]
    return words if full(outcome) else f"{words} (reduced budget)"


def full(outcome: dict[str, Any]) -> bool:
    """Whether the cell had the published budget."""
    return outcome["frames"] >= outcome["published_frames"]


def interval(estimate: dict[str, Any]) -> str:
    """A point with its interval over seeds."""
    point = figure(estimate["point"])
    return point if estimate["low"] is None else f"{point} [{figure(estimate['low'])}, {figure(estimate['high'])}]"


def figure(value: float) -> str:
    """A score with as many digits as its size asks for."""
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:,.1f}"


def _stored(cell: Cell) -> dict[str, Any] | None:
    file = RESULTS / f"{cell.name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def suites() -> str:
    """The tables of all suites."""
    parts = [
        f"### {HEADINGS[name]}: `python -m benchmarks.suite {name}`\n\n{table(cells)}" for name, cells in SUITES.items()
    ]
    return "\n".join(parts)


def replaced(text: str, name: str, part: str) -> str:
    """The text with what stands between the marks of that name replaced."""
    begin, end = BEGIN.format(name), END.format(name)
    before, found, rest = text.partition(begin)
    if not found or end not in rest:
        raise SystemExit(f"{DOCUMENT.name} has no part between {begin} and {end}")
    return before + begin + "\n\n" + part + "\n" + end + rest.partition(end)[2]


def main() -> None:
    """Replace what stands between the marks in the document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, part in (("suites", suites()), ("returns", peers.returns()), ("rates", peers.rates())):
        text = replaced(text, name, part)
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
