"""How large a spec may be: limits that no real one comes near, so that a broken or hostile text is refused at once.

Every reader keeps to them, so the rest of the package may walk a document whatever its depth or size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from operant.errors import SpecError
from operant.spec.reading.diagnostics import Diagnostic, report
from operant.spec.reading.document import Document, KeyPath, Source, Span, leaves

MAX_BYTES = 2**20
MAX_DEPTH = 100
MAX_NODES = 20_000
MAX_DIGITS = 100

NO_CHARACTER = re.compile("[\0\ud800-\udfff]")
LONG_NUMBER = re.compile(rf"[\d_]{{{MAX_DIGITS},}}", re.ASCII)


class LongNumber(str):
    """The digits of a whole number that is too long to be one; stands in data until `check_values` refuses it."""


def whole_number(digits: str) -> int | LongNumber:
    """The number of these decimal digits, unless there are too many of them."""
    return int(digits) if len(digits) <= MAX_DIGITS else LongNumber(digits)


def check_depth(source: Source, tokens: re.Pattern[str]) -> None:
    """`SpecError` where brackets stand too deep, before a parser recurses into them.

    `tokens` finds brackets, and whatever may hold brackets that are none: texts, comments.
    """
    depth = 0
    for found in tokens.finditer(source.text):
        first = source.text[found.start()]
        if first in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise too_deep(source, found.start())
        elif first in "]}":
            depth -= 1


def check_size(source: Source, data: Any) -> None:
    """`SpecError` for data of more values, or of more levels, than a spec could have."""
    waiting, count = [(data, 0)], 0
    while waiting:
        each, depth = waiting.pop()
        count += 1
        inside = each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
        waiting.extend((value, depth + 1) for value in inside)
        if count + len(waiting) > MAX_NODES:
            raise too_large(source, 0)
        if depth > MAX_DEPTH:
            raise too_deep(source, 0)


def check_values(document: Document) -> Document:
    """The document itself; `SpecError` for keys and values that nothing could take, whatever the setting."""
    problems = [problem for path, value in leaves(document.data) for problem in _impossible(path, value, document)]
    for path, mark in document.marks.items():
        if path and isinstance(path[-1], str) and (found := NO_CHARACTER.search(path[-1])):
            problems.append(_no_character(found[0], mark.key or mark.value))
    if problems:
        raise report(problems, document.source.label)
    return document


def _impossible(path: KeyPath, value: Any, document: Document) -> Iterator[Diagnostic]:
    mark = document.marks.get(path)
    at = mark.value if mark else None
    if isinstance(value, LongNumber):
        yield _long_number(f"{len(value):,}", at)
    elif isinstance(value, str) and (found := NO_CHARACTER.search(value)):
        yield _no_character(found[0], at)
    elif isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
        yield _long_number(f"more than {MAX_DIGITS}", at)


def _no_character(found: str, at: Span | None) -> Diagnostic:
    what = "a NUL character" if found == "\0" else "half of a surrogate pair, which is no character"
    return Diagnostic(f"this text holds {what}", at, "remove it")


def _long_number(digits: str, at: Span | None) -> Diagnostic:
    return Diagnostic(f"a whole number of {digits} digits", at, f"no setting takes more than {MAX_DIGITS}")


def long_number(source: Source) -> SpecError:
    """The refusal of a text in which a parser met a whole number that is too long for it."""
    found = LONG_NUMBER.search(source.text)
    start, end = found.span() if found else (0, 1)
    return report([_long_number(f"{end - start:,}", source.span(start, end))], source.label)


def too_deep(source: Source, at: int) -> SpecError:
    """The refusal of a level too many, which begins at an offset of the text."""
    cause = f"the text is nested too deeply to be a spec: more than {MAX_DEPTH} levels"
    return report([Diagnostic(cause, source.span(at, at + 1), "write it flatter")], source.label)


def too_large(source: Source, at: int) -> SpecError:
    """The refusal of a value too many, which begins at an offset of the text."""
    cause = f"the text holds more than {MAX_NODES:,} values, which no spec does"
    return report([Diagnostic(cause, source.span(at, at + 1), "is this the right file?")], source.label)
