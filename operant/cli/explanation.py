"""A spec of another lab, setting by setting, as a table that fits the terminal."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from operant.cli.output import plural

if TYPE_CHECKING:
    from operant.spec.dialects.explain import Explained
    from operant.spec.load import Explanation

VERDICTS = ("same", "remarked", "refused")
NARROWEST, FIRST = 60, 10
LONGEST_VALUE = 60


def lines(explanation: Explanation, width: int) -> list[str]:
    """A heading with the counts, and for each setting: verdict, theirs and ours side by side, the meaning below."""
    counts = {each: sum(row.verdict == each for row in explanation.settings) for each in VERDICTS}
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    column = (max(width, NARROWEST) - FIRST - 2) // 2
    head = [f"{explanation.name}: {explanation.lab}, {plural(len(explanation.settings), 'setting')}: {told}", ""]
    head += [f"{'':<{FIRST}}{'theirs':<{column}}  ours"]
    rows = [line for row in explanation.settings for line in _row(row, column)]
    return [*head, *rows, ""]


def _row(row: Explained, column: int) -> list[str]:
    left = _folded(f"{row.place} = {_text(row.value)}", column)
    right = [line for name, value in row.ours.items() for line in _folded(f"{name} = {_text(value)}", column)] or ["-"]
    height = max(len(left), len(right))
    left, right = left + [""] * (height - len(left)), right + [""] * (height - len(right))
    marks = [row.verdict] + [""] * (height - 1)
    sides = [
        f"{mark:<{FIRST}}{ours:<{column}}  {theirs}".rstrip()
        for mark, ours, theirs in zip(marks, left, right, strict=True)
    ]
    about = f"{row.means}. {row.why}" if row.why else row.means
    margin = " " * (FIRST + 2)
    return [*sides, *textwrap.wrap(about, FIRST + 2 * column + 2, initial_indent=margin, subsequent_indent=margin)]


def _folded(text: str, width: int) -> list[str]:
    """At most `width` columns a line, broken anywhere where it must be."""
    return textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False) or [""]


def _text(value: Any) -> str:
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."
