"""From another lab's file to a native document, or to one error that names all that has no counterpart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from operant.spec.dialects.conversion import Conversion, Remark, Section
from operant.spec.dialects.table import Table
from operant.spec.overrides import Override, parse
from operant.spec.reading.diagnostics import report
from operant.spec.reading.document import Document
from operant.spec.schema import Spec


@dataclass(frozen=True)
class Converted:
    """A native document, whose marks lie in the other lab's file, and what is to be said about it.

    `overrides` are those that are still to be applied to it, for others were settings of the other lab.
    """

    document: Document
    remarks: tuple[Remark, ...]
    overrides: tuple[str, ...] = ()


def has_shape(content: Any, key: str, kind: type, foreign: str) -> bool:
    """Whether plain data has a `key` that holds this kind of thing, and lacks one that is `foreign` to such files."""
    return isinstance(content, dict) and isinstance(content.get(key), kind) and foreign not in content


@dataclass(frozen=True)
class Converter:
    """The conversion of a lab's files: `read` converts their sections from the top, by the rows of `table` or beside.

    `prepare` brings older forms of a file to the newest one first.
    """

    lab: str
    read: Callable[[Section], None]
    table: Table = field(default_factory=Table)
    prepare: Callable[[Document], Document] | None = None

    def __call__(self, document: Document, lossy: bool = False, overrides: Sequence[str] = ()) -> Converted:
        """The native document, or SpecError with everything that has no counterpart; see `finished` for `lossy`."""
        conversion, rest = self.converted(document, overrides)
        return replace(finished(conversion, document, lossy), overrides=rest)

    def converted(self, document: Document, overrides: Sequence[str] = ()) -> tuple[Conversion, tuple[str, ...]]:
        """All that is known of the file, refused or not, and the overrides that are settings of ours."""
        prepared = self.prepare(document) if self.prepare else document
        completed, ours = _completed(prepared, self.table, [parse(text) for text in overrides])
        given = {each.key: each.value.data for each in ours}
        conversion = Conversion(completed, self.lab, self.table, given)
        self.read(Section(conversion, ()))
        return conversion, tuple(each.value.source.text for each in ours)


def _completed(document: Document, table: Table, overrides: Sequence[Override]) -> tuple[Document, list[Override]]:
    """The file with what overrides say of its settings, and the overrides that are settings of ours.

    One of ours that is the same there is put into the file too, so that what follows from it there does so.
    """
    ours: list[Override] = []
    for override in overrides:
        kind, path = table.kind_of(document.data), tuple(override.key.split("."))
        twins = (row for row in table.chosen(kind) if row.is_copy and row.ours == (override.key,))
        twin = next(twins, None)
        row = table.row_at(path, kind)
        if twin is not None:
            document = document.placed(twin.parts, override.value)
        elif path[0] not in Spec.model_fields and row is not None and row.place == override.key:
            document = document.placed(path, override.value)
            continue
        ours.append(override)
    return document, ours


def finished(conversion: Conversion, document: Document, lossy: bool) -> Converted:
    """The result of a conversion; SpecError with everything that has no counterpart.

    `lossy` turns settings without counterpart into remarks, where a spec remains without them.
    """
    problems = conversion.refusals if lossy else [*conversion.refusals, *conversion.losses]
    if problems:
        command = f"operant convert {document.source.label} {document.data.get('name', '')} --lossy"
        remedy = None if conversion.refusals else command.replace("  ", " ")
        raise report([replace(each, remedy=each.remedy or remedy) for each in problems], document.source.label)
    said = [*conversion.remarks, *conversion.lost]
    ordered = sorted(said, key=lambda each: (each.at.line, each.at.column) if each.at else (0, 0))
    return Converted(conversion.native, tuple(ordered))
