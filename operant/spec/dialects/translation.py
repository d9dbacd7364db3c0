"""What all translations share: how one is begun, and its end: a native document with its remarks, or one report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from operant.spec.dialects.ledger import Ledger, Remark, Section
from operant.spec.document import Document
from operant.spec.problems import report


@dataclass(frozen=True)
class Translation:
    """A native document, whose marks lie in the other lab's file, and what is to be said about it."""

    document: Document
    remarks: tuple[Remark, ...]


def has_shape(content: Any, key: str, kind: type, foreign: str) -> bool:
    """Whether plain data has a `key` that holds this kind of thing, and lacks one that is `foreign` to such files."""
    return isinstance(content, dict) and isinstance(content.get(key), kind) and foreign not in content


def translator(lab: str, read: Callable[[Section], None]) -> Callable[[Document, bool], Translation]:
    """The translation of a lab's files, whose sections `read` enters into the books from the top.

    It gives a native document, or SpecError with everything that has no counterpart; see `finished` for `lossy`.
    """

    def translate(document: Document, lossy: bool = False) -> Translation:
        ledger = Ledger(document, lab)
        read(Section(ledger, ()))
        return finished(ledger, document, lossy)

    return translate


def finished(ledger: Ledger, document: Document, lossy: bool) -> Translation:
    """What the books of a translation come to; SpecError with everything that has no counterpart.

    `lossy` turns settings without counterpart into remarks, where a spec remains without them.
    """
    problems = ledger.refusals if lossy else [*ledger.refusals, *ledger.losses]
    if problems:
        remedy = None if ledger.refusals else _remedy(document)
        raise report([replace(each, remedy=each.remedy or remedy) for each in problems], document.source.label)
    ordered = sorted([*ledger.remarks, *ledger.lost], key=_line)
    return Translation(ledger.native, tuple(ordered))


def _line(remark: Remark) -> tuple[int, int]:
    return (remark.at.line, remark.at.column) if remark.at else (0, 0)


def _remedy(document: Document) -> str:
    return f"operant convert {document.source.label} {document.data.get('name', '')} --lossy".replace("  ", " ")
