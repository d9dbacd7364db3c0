"""Errors in a spec, printed as a compiler prints them: place, cause, the line, a caret, a hint."""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from operant.errors import SpecError
from operant.spec.reading.document import Span

MAX_SHOWN = 8
LINE_WIDTH = 100
VALUE_WIDTH = 40
MAX_WORDS = 1000
MAX_LISTED = 40
LONGEST_WORD = 200
MOST_WORDS = 1000


@dataclass(frozen=True)
class Diagnostic:
    """One thing that is wrong: `hint` stands beside the caret, `remedy` is what to type next."""

    cause: str
    at: Span | None = None
    hint: str = ""
    remedy: str | None = None


def report(problems: Sequence[Diagnostic], label: str | None = None, unseen: int = 0) -> SpecError:
    """One error for all the problems, in the order of the text, of which the first few are shown.

    `label` names the file for a problem that has no place of its own; `unseen` are problems that were only counted.
    """
    ordered = sorted(problems, key=lambda problem: order(problem.at))
    shown, more = ordered[:MAX_SHOWN], len(ordered) - MAX_SHOWN + unseen
    first, *rest = shown
    parts = [_body(first)]
    for before, problem in zip(shown, rest, strict=False):
        parts.append(_next_step(before, problem))
        parts.append(f"{_place(problem, label)}: {_body(problem)}")
    if more > 0:
        parts.append(f"and {more:,} more")
    cause = "\n".join(part for part in parts if part)
    remedy = shown[-1].remedy
    return SpecError(cause, place=_place(first, label), remedy=remedy and cut(remedy))


def order(at: Span | None) -> tuple[bool, int, int]:
    """Overrides first, as they were given, for they are the newest words; then by position in the file."""
    return (False, 0, 0) if at is None or at.source.label is None else (True, at.line, at.column)


def _place(problem: Diagnostic, label: str | None) -> str:
    return problem.at.place if problem.at is not None else label or "spec"


def _next_step(problem: Diagnostic, following: Diagnostic) -> str:
    """A problem's own remedy, unless the one after it says the same."""
    return f"  try: {cut(problem.remedy)}" if problem.remedy and problem.remedy != following.remedy else ""


def _body(problem: Diagnostic) -> str:
    cause, hint = cut(problem.cause), cut(problem.hint)
    if problem.at is None:
        return f"{cause}\n  {hint}" if hint else cause
    return f"{cause}\n{_excerpt(problem.at, hint)}"


def _excerpt(at: Span, hint: str) -> str:
    """The line, cut to a readable width around the span, and the caret line beneath it."""
    start = max(0, at.column - 1 - LINE_WIDTH * 2 // 3) if len(at.text) > LINE_WIDTH else 0
    line = at.text[start : start + LINE_WIDTH]
    before = line[: at.column - 1 - start]
    marked = line[len(before) : len(before) + at.width]
    gutter, blank = ("  -s ", "     ") if at.source.label is None else _gutter(at.line)
    caret = " " * _columns(before) + "^" * max(_columns(marked), 1)
    return f"{gutter}{_printable(line)}\n{blank}{caret} {hint}".rstrip()


def _gutter(line: int) -> tuple[str, str]:
    number = str(line)
    return f"  {number} | ", f"  {' ' * len(number)} | "


def _printable(text: str) -> str:
    """The text with tabs and control characters as single visible columns."""
    return "".join(" " if c == "\t" else c if c.isprintable() else "?" for c in text)


def _columns(text: str) -> int:
    """How many terminal columns a text fills; East Asian wide characters fill two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in _printable(text))


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The known word most like `word`, or None when none is like it; first of all one that is a single slip away."""
    if len(word) > LONGEST_WORD:
        return None
    known = {each.lower(): each for each in islice(words, MOST_WORDS) if len(each) <= LONGEST_WORD}
    typed = word.lower()
    slips = [each for each in known if _is_one_slip(typed, each)]
    found = difflib.get_close_matches(typed, slips or known, n=1, cutoff=0.0 if slips else 0.6)
    return known[found[0]] if found else None


def _is_one_slip(typed: str, meant: str) -> bool:
    """Whether one letter is missing, too many or another, or two neighbours have changed places."""
    short, long = sorted((typed, meant), key=len)
    if len(long) - len(short) > 1:
        return False
    at = next((i for i, pair in enumerate(zip(short, long, strict=False)) if pair[0] != pair[1]), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    swapped = short[at + 1 : at + 2] + short[at : at + 1] + short[at + 2 :]
    return short[at + 1 :] == long[at + 1 :] or swapped == long[at:]


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """ "did you mean gamma?", or nothing when no known word is near."""
    found = nearest(word, words)
    return f"did you mean {found}?" if found else ""


def cut(text: str, width: int = MAX_WORDS) -> str:
    """A text that fits on a screen, whatever was typed into it; what is left out is in the middle."""
    half = (width - 5) // 2
    return text if len(text) <= width else f"{text[:half]} ... {text[-half:]}"


def listed(names: Sequence[str]) -> str:
    """Names for a sentence, as many as can be read."""
    more = len(names) - MAX_LISTED
    return ", ".join(cut(each, VALUE_WIDTH) for each in names[:MAX_LISTED]) + (
        f" and {more:,} more" if more > 0 else ""
    )


def shown(value: Any) -> str:
    """A value as a file would spell it, cut short."""
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    text = json.dumps(text, ensure_ascii=False) if isinstance(value, str) else re.sub(r"\s+", " ", text)
    return text if len(text) <= VALUE_WIDTH else f"{text[: VALUE_WIDTH - 3]}..."
