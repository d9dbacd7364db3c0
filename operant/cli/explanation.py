"""A spec of another lab, setting by setting, as text that fits the terminal."""

from __future__ import annotations

import json
import textwrap
from itertools import groupby
from typing import TYPE_CHECKING, Any

from operant.cli.output import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from operant.spec.dialects.explain import Explained
    from operant.spec.load import Explanation

VERDICTS = ("same", "remarked", "refused")
NARROWEST, FIRST = 60, 10
LONGEST_VALUE = 60


def lines(explanation: Explanation, width: int) -> list[str]:
    """A heading with the counts, and for each setting: the verdict, theirs, ours below it, and what it means.

    Neighbours of which the same is to be said share it.
    """
    counts = {each: sum(row.verdict == each for row in explanation.settings) for each in VERDICTS}
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    head = [f"{explanation.name}: {explanation.lab}, {plural(len(explanation.settings), 'setting')}: {told}", ""]
    groups = [list(group) for _, group in groupby(explanation.settings, key=_said)]
    return [*head, *(line for group in groups for line in _group(group, max(width, NARROWEST))), ""]


def _said(row: Explained) -> tuple[str, str, list[str]]:
    return row.verdict, _about(row), [f"{name} = {_text(value)}" for name, value in row.ours.items()]


def _group(rows: Sequence[Explained], width: int) -> list[str]:
    verdict, about, ours = _said(rows[0])
    theirs = [line for row in rows for line in _indented(f"{row.place} = {_text(row.value)}", width, FIRST)]
    theirs[0] = f"{verdict:<{FIRST}}{theirs[0][FIRST:]}"
    becomes = [line for each in ours for line in _indented(f"-> {each}", width, FIRST + 2)]
    return [*theirs, *becomes, *_indented(about, width, FIRST + 4, hanging=0)]


def _about(row: Explained) -> str:
    """What it means there and what differs here, without saying the same words twice."""
    return row.why if row.why.endswith(row.means) else ". ".join(filter(None, (row.means, row.why)))


def _indented(text: str, width: int, margin: int, hanging: int = 4) -> list[str]:
    """At most `width` columns a line; a name is broken only where it is longer than a line."""
    first, later = " " * margin, " " * (margin + hanging)
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)


def _text(value: Any) -> str:
    """As YAML and JSON write it."""
    text = value if isinstance(value, str) and value.strip() else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."
