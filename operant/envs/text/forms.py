"""The form of an answer in LaTeX: a list, a tuple or an interval, a set, a union, a matrix, an equation, a formula.

Answers are the same only if their forms are: two candidates are never one answer, a point is no interval and a list is
no point. Only a formula that stands by itself is ever handed to algebra, and only if it is written in signs whose
meaning is certain; whatever else a text holds is compared by its spelling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from operant.envs.text.latex import normalize, number

MOST_PARTS = 30

Kind = Literal["formula", "list", "tuple", "union", "matrix", "equation"]
SPLIT_BY: tuple[tuple[str, Kind], ...] = ((",", "list"), (r"\cup", "union"), ("=", "equation"))
Equal = Callable[[str, str], bool]

_SEPARATORS = re.compile(
    r"\\(?:text|mbox|mathrm|textrm)\{\s*,?\s*(?:or|and)\s*\}|\\(?:lor|vee|land|wedge)(?![A-Za-z])"
    r"|(?<![A-Za-z\\])(?:or|and)(?![A-Za-z])|;"
)
_MATRIX = re.compile(r"\\begin\{([pbBvV]?matrix)\}(.*)\\end\{\1\}", re.DOTALL)
_COMMANDS = (
    "frac|sqrt|pi|cdot|times|div|infty|binom|lfloor|rfloor|lceil|rceil|alpha|beta|gamma|delta|theta|lambda|mu|phi|omega"
    "|sin|cos|tan|cot|sec|csc|arcsin|arccos|arctan|sinh|cosh|tanh|log|ln|exp"
)
_CERTAIN = re.compile(rf"(?:[0-9A-Za-z+\-*/^(){{}}.! ]|\\(?:{_COMMANDS})(?![A-Za-z]))+")
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True)
class Form:
    """An answer taken apart: `parts` are its members, `marks` what they stand between; a formula has its text only."""

    kind: Kind
    text: str
    parts: tuple[Form, ...] = ()
    marks: str = ""


def form_of(answer: str) -> Form:
    """The form of an answer as a person wrote it."""
    return _form(normalize(_SEPARATORS.sub(",", answer)))


def same_form(mine: Form, theirs: Form, equal: Equal) -> bool:
    """Whether two answers are the same; `equal` says it of two formulas."""
    mine, theirs = _as_members(mine), _as_members(theirs)
    if mine.kind == theirs.kind == "equation":
        return _same_equation(mine, theirs, equal)
    if "equation" in (mine.kind, theirs.kind):
        return _same_value(mine, theirs, equal)
    if "list" in (mine.kind, theirs.kind):
        return _same_members(_members(mine), _members(theirs), equal)
    if mine.kind != theirs.kind or mine.marks != theirs.marks:
        return False
    if mine.kind == "formula":
        return equal(mine.text, theirs.text)
    if mine.kind == "union":
        return _same_members(mine.parts, theirs.parts, equal)
    pairs = list(zip(mine.parts, theirs.parts, strict=False))
    return len(mine.parts) == len(theirs.parts) and all(same_form(a, b, equal) for a, b in pairs)


def is_certain(formula: str) -> bool:
    """Whether a formula is whole, and written in nothing but signs whose meaning is certain."""
    whole = _CERTAIN.fullmatch(formula) is not None and _is_balanced(formula)
    return whole and formula[-1] not in "+-*/^." and formula[0] not in "*/^!"


def _form(text: str) -> Form:
    if (matrix := _MATRIX.fullmatch(text)) is not None:
        rows = [row for row in re.split(r"\\\\", matrix[2]) if row]
        cells = tuple(_form(cell) for row in rows for cell in row.split("&"))
        return Form("matrix", text, cells, f"{len(rows)} rows")
    for sign, kind in SPLIT_BY:
        parts = _split(text, sign)
        if 1 < len(parts) <= MOST_PARTS and all(parts):
            return Form(kind, text, tuple(_form(part) for part in parts))
    if text.startswith(r"\{") and text.endswith(r"\}") and len(text) > 4:
        return Form("list", text, tuple(_form(part) for part in _split(text[2:-2], ",")))
    inner = _split(text[1:-1], ",")
    if text[:1] in ("(", "[") and text[-1:] in (")", "]") and 1 < len(inner) <= MOST_PARTS:
        return Form("tuple", text, tuple(_form(part) for part in inner), text[0] + text[-1])
    return Form("formula", normalize(text))


def _as_members(form: Form) -> Form:
    """The form with plus-or-minus as two members, members of members as its own, and one member as itself."""
    if form.kind == "formula" and r"\pm" in form.text:
        two = (form.text.replace(r"\pm", sign, 1) for sign in "+-")
        form = Form("list", form.text, tuple(Form("formula", one.lstrip("+")) for one in two))
    if form.kind != "list":
        return form
    parts = [member for part in form.parts for member in _members(_as_members(part))]
    return parts[0] if len(parts) == 1 else Form("list", form.text, tuple(parts))


def _members(form: Form) -> tuple[Form, ...]:
    return form.parts if form.kind == "list" else (form,)


def _same_members(mine: Sequence[Form], theirs: Sequence[Form], equal: Equal) -> bool:
    """Whether each member of either has its like in the other, in any order."""

    def covered(some: Sequence[Form], others: Sequence[Form]) -> bool:
        return all(any(same_form(one, other, equal) for other in others) for one in some)

    return covered(mine, theirs) and covered(theirs, mine)


def _same_equation(mine: Form, theirs: Form, equal: Equal) -> bool:
    """Whether two equations have the same sides, or are the same but for a simple factor."""
    if len(mine.parts) != 2 or len(theirs.parts) != 2:
        return False
    if all(same_form(a, b, equal) for a, b in zip(mine.parts, theirs.parts, strict=True)):
        return True
    if not all(is_certain(side.text) for side in (*mine.parts, *theirs.parts)):
        return False
    one, other = (f"({each.parts[0].text})-({each.parts[1].text})" for each in (mine, theirs))
    return any(equal(f"({one})*({factor})", other) for factor in ("1", "-1", "2", "-2", "1/2", "-1/2"))


def _same_value(mine: Form, theirs: Form, equal: Equal) -> bool:
    """Whether a chain of equal things is the other answer: names are passed over, all values count."""
    chain, value = (mine, theirs) if mine.kind == "equation" else (theirs, mine)
    values = [part for part in chain.parts if not _is_name(part, value)]
    return bool(values) and all(same_form(part, value, equal) for part in values)


def _is_name(part: Form, value: Form) -> bool:
    """Whether a side of an equation only names what the value is of: it has letters, and the value has none."""
    return part.kind == "formula" and _has_letters(part.text) and not _has_letters(value.text)


def _has_letters(text: str) -> bool:
    return re.search(r"[A-Za-z]", re.sub(r"\\[A-Za-z]+", "", text)) is not None


def _split(text: str, sign: str) -> list[str]:
    """The parts between signs that stand in no bracket."""
    parts, depth, start, place = [], 0, 0, 0
    while place < len(text):
        if depth == 0 and text.startswith(sign, place):
            parts.append(text[start:place])
            place = start = place + len(sign)
            continue
        depth += (text[place] in _OPEN) - (text[place] in _CLOSE)
        place += 1
    return [*parts, text[start:]]


def _is_balanced(text: str) -> bool:
    opened: list[str] = []
    for letter in text:
        if letter in _OPEN:
            opened.append(letter)
        elif letter in _CLOSE and (not opened or _OPEN.index(opened.pop()) != _CLOSE.index(letter)):
            return False
    return not opened


def plain_equal(one: str, other: str) -> bool | None:
    """Whether two formulas are the same by their spelling or as plain numbers; None where that does not decide it."""
    if one == other:
        return True
    values = number(one), number(other)
    return None if None in values else values[0] == values[1]
