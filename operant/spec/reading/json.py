"""JSON with the position of every key and value.

The YAML reader does not replace this one: YAML takes comments, single quotes, bare words and `012` without a word, does
not join escaped surrogate pairs, and needs ten times as long.
"""

from __future__ import annotations

import json
import re

from operant.spec.reading.diagnostics import Diagnostic, report
from operant.spec.reading.document import Document, KeyPath, Mark, Source
from operant.spec.reading.limits import check_depth, check_size, check_values, whole_number

SPACE = re.compile(r"[ \t\n\r]*")
STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
# For a text that may not be JSON at all: a quote that is never closed goes on to the end, so that none is tried twice.
TEXT_OR_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
SCALAR = re.compile(r"[^\s,\]}]+")
WORD = re.compile(r"[^\s,:\]}]+")
CLOSING = {"}": "object", "]": "list"}
SLIPS = {
    "'": ("a single quote", 'JSON text stands in double quotes: "..."'),
    "/": ("a comment", "JSON has none; YAML and TOML do"),
    "#": ("a comment", "JSON has none; YAML and TOML do"),
}
SPELLINGS = {"true": "true", "false": "false", "none": "null", "null": "null", "~": "null"}
MESSAGES = {
    "Expecting property name": "a key in double quotes is expected here",
    "Expecting ',' delimiter": "a comma or a closing bracket is expected here",
    "Expecting ':' delimiter": "a colon is expected here",
    "Expecting value": "this is no JSON value",
    "Extra data": "there is more text after the end of the JSON value",
    "Unterminated string": "this quote is never closed",
    "Invalid control character": "a tab or line break inside a quoted text",
    "Invalid \\escape": "JSON has no such escape",
}


def read_json(source: Source) -> Document:
    """Parse a text of one JSON value; the data of an empty text is None."""
    if not source.text.strip():
        return Document(source, None, {})
    check_depth(source, TEXT_OR_BRACKET)
    try:
        data = json.loads(source.text, parse_int=whole_number)
    except json.JSONDecodeError as fault:
        raise report([_syntax_error(source, fault)]) from None
    check_size(source, data)
    scan = _Scan(source)
    scan.value(scan.skip(0), (), None)
    if scan.diagnostics:
        raise report(scan.diagnostics)
    return check_values(Document(source, data, scan.marks))


class _Scan:
    """Finds where things are in a text already known to be JSON."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.marks: dict[KeyPath, Mark] = {}
        self.diagnostics: list[Diagnostic] = []

    def skip(self, at: int) -> int:
        found = SPACE.match(self.text, at)
        return found.end() if found else at

    def value(self, at: int, path: KeyPath, key: tuple[int, int] | None) -> int:
        """Mark the value that starts at `at`; the offset just after it."""
        first = self.text[at]
        if first == "{":
            end = self.members(at, path)
        elif first == "[":
            end = self.items(at, path)
        else:
            found = STRING.match(self.text, at) or SCALAR.match(self.text, at)
            end = found.end() if found else at + 1
        self.marks[path] = Mark(self.source.span(at, end), self.source.span(*key) if key else None)
        return end

    def members(self, at: int, path: KeyPath) -> int:
        seen: dict[str, int] = {}
        at = self.skip(at + 1)
        while found := STRING.match(self.text, at):
            name, key_end = json.loads(found.group()), found.end()
            key = self.source.span(at, key_end)
            if name in seen:
                self.diagnostics.append(
                    Diagnostic(f"{name} is given twice", key, f"first given on line {seen[name]}; keep one of them")
                )
            seen.setdefault(name, key.line)
            colon = self.skip(key_end)
            at = self.skip(self.value(self.skip(colon + 1), (*path, name), (at, key_end)))
            at = self.skip(at + 1) if self.text[at] == "," else at
        return at + 1

    def items(self, at: int, path: KeyPath) -> int:
        index = 0
        at = self.skip(at + 1)
        while self.text[at] != "]":
            at = self.skip(self.value(at, (*path, index), None))
            at = self.skip(at + 1) if self.text[at] == "," else at
            index += 1
        return at + 1


def _syntax_error(source: Source, fault: json.JSONDecodeError) -> Diagnostic:
    """What is wrong in JSON's own terms, with the fix for the usual slips."""
    at, text = fault.pos, source.text
    before, here = text[:at].rstrip(), text[at : at + 1]
    if here in CLOSING and before.endswith(","):
        comma = source.span(len(before) - 1, len(before))
        return Diagnostic("a comma before the end", comma, f"JSON {CLOSING[here]}s end without one: remove it")
    if not here:
        last = source.span(max(len(before) - 1, 0), len(before))
        return Diagnostic("the JSON text ends too early", last, "a bracket or brace is still open")
    cause, hint = SLIPS.get(here) or _meant(fault.msg, text, at)
    return Diagnostic(cause, source.span(at, at + 1), hint)


def _meant(message: str, text: str, at: int) -> tuple[str, str]:
    """Plain words for the parser's message, and how JSON spells the word found there."""
    said = next((words for start, words in MESSAGES.items() if message.startswith(start)), message)
    found = WORD.match(text, at)
    word = found.group() if found else ""
    if word.startswith("${"):
        return said, 'write "${...}" in quotes'
    spelling = SPELLINGS.get(word.lower())
    return said, f"JSON writes {spelling}" if spelling and spelling != word else ""
