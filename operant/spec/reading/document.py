"""A parsed text that remembers where each of its keys and values was written.

The three readers (YAML, JSON, TOML) and the `-s` overrides all produce a `Document`, so that an
error found later, in the plain data, can still point at the character that caused it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Source:
    """A text and what to call it: a file by its path, or an override by no label at all."""

    text: str
    label: str | None = None

    @cached_property
    def _line_starts(self) -> list[int]:
        """The offset of each line, and one past the end of the last: found once, for thousands of spans may ask."""
        starts = [0]
        while found := self.text.find("\n", starts[-1]) + 1:
            starts.append(found)
        return [*starts, len(self.text) + 1]

    def span(self, start: int, end: int) -> Span:
        """The span between two offsets of the text, cut at the end of its first line."""
        line = bisect_right(self._line_starts, start, hi=len(self._line_starts) - 1)
        stop = min(end, self._line_starts[line] - 1)
        return Span(self, line, start - self._line_starts[line - 1] + 1, max(stop - start, 1))

    def line(self, number: int) -> str:
        """One line of the text, counted from 1, without its end."""
        return self.text[self._line_starts[number - 1] : self._line_starts[number] - 1].rstrip("\r")


@dataclass(frozen=True)
class Span:
    """Part of one line of a source; lines and columns count from 1."""

    source: Source
    line: int
    column: int
    width: int = 1

    @property
    def place(self) -> str:
        """`file:line:col`, as compilers print it and editors open it."""
        label = self.source.label
        return "command line" if label is None else f"{label}:{self.line}:{self.column}"

    @property
    def text(self) -> str:
        """The whole line that the span lies on."""
        return self.source.line(self.line)


@dataclass(frozen=True)
class Mark:
    """Where a value was written and, unless it is a list item or the root, its key."""

    value: Span
    key: Span | None = None


@dataclass(frozen=True)
class Document:
    """Plain data (mappings, lists, scalars) and the marks of everything in it, by path.

    `repeated` has the keys that were given twice, with the lines of both, where the last one is taken.
    """

    source: Source
    data: Any
    marks: dict[KeyPath, Mark]
    repeated: tuple[tuple[KeyPath, int, int], ...] = ()

    def mark_of(self, path: KeyPath) -> tuple[KeyPath, Mark] | None:
        """The mark of `path` or, where it was never written, of its nearest ancestor below the root."""
        while path:
            if path in self.marks:
                return path, self.marks[path]
            path = path[:-1]
        return None

    def parts(self) -> dict[str, Document]:
        """What lies under each key of the document, as documents of their own."""
        marks: dict[str | int, dict[KeyPath, Mark]] = {key: {} for key in self.data}
        for path, mark in self.marks.items():
            if path and path[0] in marks:
                marks[path[0]][path[1:]] = mark
        return {key: replace(self, data=value, marks=marks[key]) for key, value in self.data.items()}

    def placed(self, path: KeyPath, other: Document) -> Document:
        """A copy with `other` put at `path`, marks and all; mappings on the way are made as needed."""
        kept = dict(self.marks)
        kept.pop(path, None)
        if isinstance(lookup(self.data, path), dict | list):
            kept = {at: mark for at, mark in kept.items() if at[: len(path)] != path}
        moved = {path + at: mark for at, mark in other.marks.items()}
        return replace(self, data=put(self.data, path, other.data), marks={**kept, **moved})

    def refilled(self, pieces: Mapping[KeyPath, Document]) -> Document:
        """A copy with each of the scalars at these paths replaced, marks and all."""
        kept = {at: mark for at, mark in self.marks.items() if at not in pieces}
        moved = {path + at: mark for path, piece in pieces.items() for at, mark in piece.marks.items()}
        return replace(self, data=_refilled(self.data, (), pieces), marks={**kept, **moved})


def _refilled(data: Any, path: KeyPath, pieces: Mapping[KeyPath, Document]) -> Any:
    if isinstance(data, dict):
        return {key: _refilled(value, (*path, key), pieces) for key, value in data.items()}
    if isinstance(data, list):
        return [_refilled(value, (*path, index), pieces) for index, value in enumerate(data)]
    return pieces[path].data if path in pieces else data


def put(data: Any, path: KeyPath, value: Any) -> Any:
    """A copy of plain data with `value` at `path`; mappings on the way are made as needed."""
    if not path:
        return value
    head, rest = path[0], path[1:]
    if isinstance(data, list) and isinstance(head, int):
        return [put(item, rest, value) if index == head else item for index, item in enumerate(data)]
    mapping = data if isinstance(data, dict) else {}
    return {**mapping, head: put(mapping.get(head), rest, value)}


def lookup(data: Any, path: KeyPath) -> Any:
    """What stands at a path of plain data; None where nothing does."""
    for part in path:
        if isinstance(data, dict):
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            return None
    return data


def leaves(data: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every scalar in plain data, with its path."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from leaves(value, (*path, index))
    else:
        yield path, data


Reader = Callable[[Source], Document]
