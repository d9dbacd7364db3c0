"""TOML with the position of every key and value."""

from __future__ import annotations

import re
import tomllib

from operant.spec.reading.diagnostics import Diagnostic, report
from operant.spec.reading.document import Document, KeyPath, Mark, Source
from operant.spec.reading.limits import MAX_DEPTH, check_depth, check_size, check_values, long_number, too_deep

BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
BARE_VALUE = re.compile(r"[^,\]}#\n]*[^,\]}#\s]")
STRING = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'', re.DOTALL)
# For a text that may not be TOML at all: a quote that is never closed goes on to the end, so that none is tried twice.
TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"{3,5}|\Z)|\'\'\'.*?(?:\'{3,5}|\Z)|"(?:\\.|[^"\\\n])*+"?|\'[^\'\n]*+\'?'
    r"|#[^\n]*|[A-Za-z0-9_-]+|[\[\]{}.]|\n",
    re.DOTALL,
)
TWICE = re.compile(r"Cannot overwrite|Cannot declare .* twice|Duplicate inline table key")
KEY_OF_LINE = re.compile(r"[ \t\[]*(?P<key>[^=\]\n]*[^=\]\s])")
FAULT = re.compile(r"(?P<said>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.DOTALL)


def read_toml(source: Source) -> Document:
    """Parse a TOML text; the data of an empty one is None."""
    check_depth(source, TOKEN)
    _check_keys(source)
    try:
        data = tomllib.loads(source.text) or None
    except tomllib.TOMLDecodeError as fault:
        raise report([_syntax_error(source, fault)]) from None
    except ValueError:  # of int(), which takes no more digits than a safe number of them
        raise long_number(source) from None
    check_size(source, data)
    return check_values(Document(source, data, _Scan(source).marks_of_all()))


def _check_keys(source: Source) -> None:
    """`SpecError` for a dotted key of too many parts, each of which is a level."""
    dots, after_dot = 0, False
    for found in TOKEN.finditer(source.text):
        is_dot = found[0] == "."
        dots = dots + 1 if is_dot else dots if after_dot else 0
        after_dot = is_dot
        if dots >= MAX_DEPTH:
            raise too_deep(source, found.start())


class _Scan:
    """Finds where things are in a text already known to be TOML (so it need not look for faults)."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.marks: dict[KeyPath, Mark] = {}
        self.tables: dict[KeyPath, int] = {}

    def marks_of_all(self) -> dict[KeyPath, Mark]:
        at, table = self.skip(0), ()
        while at < len(self.text):
            if self.text[at] == "[":
                at, table = self.header(at)
            else:
                at = self.pair(at, table)
            at = self.skip(at)
        return self.marks

    def skip(self, at: int) -> int:
        found = BLANK.match(self.text, at)
        return found.end() if found else at

    def header(self, at: int) -> tuple[int, KeyPath]:
        """Mark a `[table]` or `[[table of an array]]` line; where it ends and the path it opens."""
        double = self.text.startswith("[[", at)
        start = self.skip(at + (2 if double else 1))
        end, names = self.key(start)
        path = self.opened(names[:-1]) + names[-1:]
        span = self.source.span(start, end)
        for depth in range(1, len(names) + 1):
            self.marks.setdefault(self.opened(names[: depth - 1]) + names[depth - 1 : depth], Mark(span, span))
        if double:
            index = self.tables[path] = self.tables.get(path, -1) + 1
            path = (*path, index)
            self.marks[path] = Mark(span)
        return self.skip(end) + (2 if double else 1), path

    def opened(self, names: KeyPath) -> KeyPath:
        """`names` with the index of the newest table after each array of tables on the way."""
        path: KeyPath = ()
        for name in names:
            path = (*path, name)
            path = (*path, self.tables[path]) if path in self.tables else path
        return path

    def pair(self, at: int, table: KeyPath) -> int:
        """Mark one `key = value`; dotted keys mark the tables they imply."""
        key_end, names = self.key(at)
        key = self.source.span(at, key_end)
        for depth in range(1, len(names)):
            self.marks.setdefault(table + names[:depth], Mark(key, key))
        start = self.skip(self.skip(key_end) + 1)
        end = self.value(start, table + names)
        self.marks[table + names] = Mark(self.source.span(start, end), key)
        return end

    def key(self, at: int) -> tuple[int, KeyPath]:
        """Where a dotted key ends, and its parts."""
        names: KeyPath = ()
        while True:
            found = STRING.match(self.text, at) or BARE_KEY.match(self.text, at)
            if found is None:
                return at, names
            names = (*names, _unquoted(found.group()))
            after = self.skip(found.end())
            if self.text[after : after + 1] != ".":
                return found.end(), names
            at = self.skip(after + 1)

    def value(self, at: int, path: KeyPath) -> int:
        """Mark what is inside the value that starts at `at`; the offset just after it."""
        if self.text[at] in "[{":
            return self.items(at, path) if self.text[at] == "[" else self.members(at, path)
        found = STRING.match(self.text, at) or BARE_VALUE.match(self.text, at)
        return found.end() if found else at + 1

    def items(self, at: int, path: KeyPath) -> int:
        index = 0
        at = self.skip(at + 1)
        while self.text[at] != "]":
            end = self.value(at, (*path, index))
            self.marks[(*path, index)] = Mark(self.source.span(at, end))
            at = self.skip(end)
            at = self.skip(at + 1) if self.text[at] == "," else at
            index += 1
        return at + 1

    def members(self, at: int, path: KeyPath) -> int:
        at = self.skip(at + 1)
        while self.text[at] != "}":
            at = self.skip(self.pair(at, path))
            at = self.skip(at + 1) if self.text[at] == "," else at
        return at + 1


def _unquoted(name: str) -> str:
    return next(iter(tomllib.loads(f"{name} = 0"))) if name[0] in "\"'" else name


def _syntax_error(source: Source, fault: tomllib.TOMLDecodeError) -> Diagnostic:
    found = FAULT.fullmatch(str(fault))
    said, end = (found["said"], len(source.text.rstrip())) if found else (str(fault), 0)
    if found is None or found["line"] is None:
        at = max(end - 1, 0)
    else:
        lines = source.text.split("\n")[: int(found["line"]) - 1]
        at = sum(len(line) + 1 for line in lines) + int(found["column"]) - 1
    if TWICE.match(said):
        key = KEY_OF_LINE.match(source.text, source.text.rfind("\n", 0, at) + 1)
        span = source.span(*key.span("key")) if key else source.span(at, at + 1)
        return Diagnostic("this key is given twice", span, "keep one of them")
    return Diagnostic(f"TOML cannot read this: {said}", source.span(at, at + 1), _hint(said, source.text[at:]))


def _hint(said: str, rest: str) -> str:
    if rest.startswith("null"):
        return "TOML has no null; leave the line out"
    if rest.startswith(":"):
        return "TOML writes key = value"
    if rest.startswith("${"):
        return 'write "${...}" in quotes'
    if said.startswith("Unterminated"):
        return "close the quote"
    return "text needs quotes" if said.startswith("Invalid value") and rest[:1].isalpha() else ""
