"""A comparison as plain lines: a table of the sides with score and cost, then what may be said of each pair."""

from __future__ import annotations

from collections.abc import Callable

from operant.report.cost import energy, money
from operant.report.formatting import columns, compact, duration, score
from operant.report.improvement import NO_DIFFERENCE, fewest_seeds
from operant.report.plots import labels
from operant.report.sides import Pair, Side
from operant.report.stats import NO_INTERVAL

Cell = Callable[[Side], str]


def render(sides: tuple[Side, ...], pairs: tuple[Pair, ...], notes: tuple[str, ...]) -> str:
    """The comparison in plain lines."""
    lines = [*_table(sides), "", *_pair_lines(pairs), *_seed_lines(pairs)]
    return "\n".join([*lines, *(f"note: {note}" for note in notes)])


def _table(sides: tuple[Side, ...]) -> list[str]:
    """One line a side; a column that no side fills is left out."""
    names = dict(zip((side.label for side in sides), _names(sides), strict=True))
    cells: dict[str, Cell] = {
        "": lambda side: side.label,
        "run": lambda side: names[side.label],
        "seeds": lambda side: str(side.seeds),
        "score": lambda side: "" if side.mean is None else side.mean.text().removesuffix(f" ({NO_INTERVAL})"),
        "IQM": lambda side: "" if side.iqm is None else score(side.iqm.point),
        "normalized": lambda side: _normalized(side, "iqm"),
        "optimality gap": lambda side: _normalized(side, "optimality_gap") if len(side.scores) > 1 else "",
        "frames": lambda side: compact(side.frames),
        "wall": lambda side: duration(side.cost.wall_seconds) if side.cost else "",
        "CPU": lambda side: duration(side.cost.cpu_seconds) if side.cost else "",
        "GPU": lambda side: duration(side.cost.gpu_seconds) if side.cost and side.cost.gpu_seconds else "",
        "tokens": lambda side: compact(side.cost.tokens) if side.cost and side.cost.tokens else "",
        "energy": lambda side: energy(side.cost.joules) if side.cost and side.cost.joules is not None else "",
        "cost": lambda side: money(side.cost.dollars) if side.cost and side.cost.dollars is not None else "",
    }
    filled = {head: column for head, cell in cells.items() if any(column := [cell(side) for side in sides])}
    rows = [list(row) for row in zip(*filled.values(), strict=True)]
    return columns([list(filled), *rows], right=set(range(2, len(filled))))


def _names(sides: tuple[Side, ...]) -> list[str]:
    """The shortest names that differ; of several trials the setting, and how many runs of how many problems."""
    if all(len(side.trials) == 1 and side.name == side.trials[0].name for side in sides):
        return labels([side.trials[0] for side in sides])
    return [f"{side.name}, {_count(len(side.trials), 'run')}{_of_problems(len(side.scores))}" for side in sides]


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _of_problems(number: int) -> str:
    return f" of {number} problems" if number > 1 else ""


def _normalized(side: Side, name: str) -> str:
    """The interval only of several problems: of one it is that of the score."""
    found = side.normalized.get(name)
    if found is None:
        return ""
    return found.text(2).removesuffix(f" ({NO_INTERVAL})") if len(side.scores) > 1 else f"{found.point:.2f}"


def _pair_lines(pairs: tuple[Pair, ...]) -> list[str]:
    """One sentence for two sides, a table for more."""
    if len(pairs) == 1:
        return [_sentence(pairs[0])]
    compared = [pair for pair in pairs if pair.comparison is not None]
    head = ["pair", "first wins with probability", f"p (Holm, of {len(compared)})", "verdict"]
    rows = [
        [
            f"{pair.a}, {pair.b}",
            "" if pair.comparison is None else pair.comparison.chance(),
            "" if pair.comparison is None else f"{pair.comparison.p:.2g}",
            pair.verdict + _over(pair),
        ]
        for pair in pairs
    ]
    return columns([head, *rows], right={2})


def _sentence(pair: Pair) -> str:
    if pair.comparison is None:
        return f"{pair.a} and {pair.b} are {pair.verdict}"
    chance = pair.comparison.chance()
    numbers = f"{pair.a} beats {pair.b} with probability {chance}, p = {pair.comparison.p:.2g}"
    return f"{pair.verdict}{_over(pair)}; {numbers}"


def _over(pair: Pair) -> str:
    return f" over {pair.tasks} problems" if pair.tasks > 1 else ""


def _seed_lines(pairs: tuple[Pair, ...]) -> list[str]:
    """How many seeds would be needed: for any verdict, or to see a difference of this size."""
    lines = []
    compared = [pair for pair in pairs if pair.comparison is not None]
    if any(pair.comparison is not None and pair.comparison.too_few_seeds for pair in compared):
        lines.append(f"any verdict needs {fewest_seeds(len(compared))} seeds each or more{_among(len(compared))}")
    for pair in compared:
        if pair.seeds is not None and pair.difference is not None and pair.comparison is not None:
            unclear = pair.comparison.verdict == NO_DIFFERENCE or pair.comparison.too_few_seeds
            which = f"{pair.a}, {pair.b}: " if len(pairs) > 1 else ""
            needed = max(pair.seeds, fewest_seeds(len(compared)))
            if unclear or pair.asked:
                lines.append(
                    f"{which}a difference of {abs(pair.difference):.4g} would need {needed} seeds each (power 80 %)"
                )
    return lines


def _among(count: int) -> str:
    return f" among {count} comparisons" if count > 1 else ""
