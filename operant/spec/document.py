"""A parsed text that remembers where each of its keys and values was written.

The three readers (YAML, JSON, TOML) and the `-s` overrides all produce a `Document`, so that an
error found later, in the plain data, can still point at the character that caused it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Source:
    """A text and what to call it: a file by its path, or an override by no label at all."""

    text: str
    label: str | None = None

    def span(self, start: int, end: int) -> Span:
        """The span between two offsets of the text, cut at the end of its first line."""
        line_start = self.text.rfind("\n", 0, start) + 1
        line_end = self.text.find("\n", start)
        stop = min(end, line_end if line_end >= 0 else len(self.text))
        line = self.text.count("\n", 0, start) + 1
        return Span(self, line, start - line_start + 1, max(stop - start, 1))


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
        return self.source.text.split("\n")[self.line - 1].rstrip("\r")


@dataclass(frozen=True)
class Mark:
    """Where a value was written and, unless it is a list item or the root, its key."""

    value: Span
    key: Span | None = None


@dataclass(frozen=True)
class Document:
    """Plain data (mappings, lists, scalars) and the marks of everything in it, by path."""

    source: Source
    data: Any
    marks: dict[KeyPath, Mark]

    def mark_of(self, path: KeyPath) -> tuple[KeyPath, Mark] | None:
        """The mark of `path` or, where it was never written, of its nearest ancestor below the root."""
        while path:
            if path in self.marks:
                return path, self.marks[path]
            path = path[:-1]
        return None

    def below(self, key: str) -> Document:
        """The part of the document under one of its keys, as a document of its own."""
        marks = {path[1:]: mark for path, mark in self.marks.items() if path[:1] == (key,)}
        return replace(self, data=self.data[key], marks=marks)

    def placed(self, path: KeyPath, other: Document) -> Document:
        """A copy with `other` put at `path`, marks and all; mappings on the way are made as needed."""
        kept = {at: mark for at, mark in self.marks.items() if at[: len(path)] != path}
        moved = {path + at: mark for at, mark in other.marks.items()}
        return replace(self, data=put(self.data, path, other.data), marks={**kept, **moved})


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
