"""One table per lab: every setting of its files, what it means there, and what becomes of it here.

A row is `same` (copied, perhaps with their default or by a list of values), `ignored` (left out with a remark, because
their program does not read it or no result depends on it), `refused` (a loss, unless it says what is so here anyway) or
`worked` (by a function, for what a table cannot say). The first row of a place that fits the kind of file counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from operant.spec.reading.document import KeyPath

if TYPE_CHECKING:
    from operant.spec.dialects.conversion import Section

Kind = Literal["same", "ignored", "refused", "worked"]
Function = Callable[["Section", str], None]
ANY = "*"


@dataclass(frozen=True)
class Row:
    """One setting of another lab: its dotted place, in which `*` is any key or index, and what it means there.

    Several places of which the same is to be said are separated by spaces.

    `ours` are the settings that it decides here, `said` the remark or the reason, `default` what its absence means
    there, `nothing` a value that means the same as its absence, `values` what each accepted value is here (in a refused
    row, the remark on it), `of` the kinds of file that the row is for (all, where empty).
    """

    place: str
    means: str
    kind: Kind
    ours: tuple[str, ...] = ()
    said: str = ""
    default: Any = None
    needed: bool = False
    values: Mapping[Any, Any] | None = None
    by: Function | None = None
    of: tuple[str, ...] = ()
    nothing: Any = None

    @property
    def parts(self) -> tuple[str, ...]:
        """The keys on the way to it."""
        return tuple(self.place.split("."))

    @property
    def is_copy(self) -> bool:
        """Whether it is one setting of ours with the very same value."""
        return self.kind == "same" and self.values is None and ANY not in self.place

    def fits(self, kind: str) -> bool:
        """Whether the row is for this kind of file."""
        return not self.of or kind in self.of

    def is_at(self, path: KeyPath) -> bool:
        """Whether it speaks of the setting at `path`, or of the section that holds it."""
        return len(self.parts) <= len(path) and all(
            part in (ANY, str(key)) for part, key in zip(self.parts, path, strict=False)
        )


def same(
    place: str,
    means: str,
    ours: str,
    *,
    default: Any = None,
    needed: bool = False,
    values: Mapping[Any, Any] | None = None,
    said: str = "",
    by: Function | None = None,
    nothing: Any = None,
) -> Row:
    """A setting that is one of ours; `by` adds to it what else it implies, `said` is a remark wherever it is given."""
    return Row(place, means, "same", (ours,), said, default, needed, values, by, nothing=nothing)


def ignored(place: str, means: str, said: str) -> Row:
    """A setting that is left out with this remark."""
    return Row(place, means, "ignored", (), f"left out: {said}")


def refused(
    place: str, means: str, said: str, unless: Sequence[Any] | Mapping[Any, str] = (), nothing: Any = None
) -> Row:
    """A setting without counterpart, a loss unless it has one of these values, each perhaps with a remark."""
    known = unless if isinstance(unless, Mapping) else dict.fromkeys(unless)
    return Row(place, means, "refused", (), said, values=known, nothing=nothing)


def worked(place: str, means: str, ours: str, by: Function, *, needed: bool = False) -> Row:
    """A setting that a function turns into those of ours that are named, separated by commas."""
    return Row(place, means, "worked", tuple(each.strip() for each in ours.split(",") if each), "", None, needed, by=by)


def elsewhere(place: str, means: str, ours: str) -> Row:
    """A setting that the function of another row turns into ours together with its own."""
    return Row(place, means, "worked", tuple(each.strip() for each in ours.split(",") if each))


def taken(place: str, means: str, ours: str) -> Row:
    """A setting that functions of other rows look at, whatever it says."""
    return worked(place, means, ours, lambda section, key: section.get(key))


def under(place: str, *rows: Row) -> tuple[Row, ...]:
    """The rows of a section, whose places are said from there."""
    return tuple(replace(row, place=f"{place}.{row.place}") for row in single(rows))


def only_of(kinds: Sequence[str], *rows: Row) -> tuple[Row, ...]:
    """Rows that are for these kinds of file alone."""
    return tuple(replace(row, of=tuple(kinds)) for row in rows)


def single(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The same rows, each for one place."""
    return tuple(replace(row, place=place) for row in rows for place in row.place.split())


def _one_kind(data: Any) -> str:
    return ""


@dataclass(frozen=True)
class Table:
    """All rows of a lab; `kind_of` tells from plain data which kind of file it is, where rows differ by kind.

    `ignores` is true of a lab whose program passes over keys that it does not know, which the rows name all.
    """

    rows: tuple[Row, ...] = ()
    kind_of: Callable[[Any], str] = _one_kind
    ignores: bool = False
    _chosen: dict[str, tuple[Row, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", single(self.rows))

    def chosen(self, kind: str) -> tuple[Row, ...]:
        """The rows for a kind of file, one for each place."""
        if kind not in self._chosen:
            found: dict[str, Row] = {}
            for row in self.rows:
                if row.fits(kind):
                    found.setdefault(row.place, row)
            self._chosen[kind] = tuple(found.values())
        return self._chosen[kind]

    def row_at(self, path: KeyPath, kind: str) -> Row | None:
        """The row that speaks most closely of a path; `*` is less close than a key."""
        found = [row for row in self.chosen(kind) if row.is_at(path)]
        return max(found, key=lambda row: (len(row.parts), ANY not in row.parts), default=None)

    def is_single(self, path: KeyPath, kind: str) -> bool:
        """Whether a row speaks of just this path, and none of what lies below it."""
        row = self.row_at(path, kind)
        inside = any(
            len(each.parts) > len(path) and replace(each, place=".".join(each.parts[: len(path)])).is_at(path)
            for each in self.chosen(kind)
        )
        return row is not None and len(row.parts) == len(path) and not inside


def read(top: Section, rows: Sequence[Row]) -> None:
    """Apply rows to a file, in order; whatever they do not speak of stays unread."""
    for row in single(rows):
        if row.kind == "worked" and row.by is None:
            continue  # the function of another row reads it
        for section, key in list(_places(top, row.parts)):
            _apply(row, section, key)


def _places(section: Section, parts: Sequence[str]) -> Iterator[tuple[Section, str]]:
    """The sections and keys that a place stands for."""
    head, *rest = parts
    keys = section.unread() if head == ANY and not rest else list(section.data) if head == ANY else [head]
    for key in keys:
        if not rest:
            yield section, key
        elif isinstance(section.data.get(key), list):
            for each in section.items(key) if rest[0] == ANY else ():
                yield from _places(each, rest[1:])
        else:
            yield from _places(section.below(key), rest)


def _apply(row: Row, section: Section, key: str) -> None:
    if row.needed:
        section.need(key)
    if row.nothing is not None and section.get(key) == row.nothing:
        return
    if row.kind == "same":
        _copy(row, section, key)
    elif row.kind == "ignored":
        section.drop({key: row.said})
    elif row.kind == "refused":
        _refuse(row, section, key)
    if row.by is not None:
        row.by(section, key)


def _refuse(row: Row, section: Section, key: str) -> None:
    known = row.values or {}
    section.lacks({key: row.said}, tuple(known))
    value = section.get(key)
    if isinstance(value, str) and known.get(value):
        section.remark(key, known[value])


def _copy(row: Row, section: Section, key: str) -> None:
    if row.values is None:
        section.copy(key, row.ours[0], row.default)
    elif section.get(key, row.default) is not None or None in row.values:
        found = section.only(key, row.values, default=row.default)
        if found is None:
            return
        section.set(key, row.ours[0], found)
    if row.said and section.get(key) is not None:
        section.remark(key, row.said)
