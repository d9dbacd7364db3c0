"""YAML 1.2 with the position of every key and value."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from operant.errors import SpecError
from operant.spec.reading.diagnostics import VALUE_WIDTH, Diagnostic, cut, report
from operant.spec.reading.document import Document, KeyPath, Mark, Source, Span
from operant.spec.reading.limits import MAX_DEPTH, MAX_NODES, check_values, too_deep, too_large, whole_number

if TYPE_CHECKING:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError
    from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

VERSIONS = ("1.1", "1.2")
VERSION = re.compile(r"^%YAML[ \t]+(?P<version>\S+)", re.MULTILINE)
PLAIN_WORDS = (
    (r"found character '\\t'", "a tab cannot indent YAML", "use spaces"),
    (r"found character '(.)'", "a bare value cannot start with {}", "put the text in quotes"),
    (r"mapping values are not", "a second ': ' where a value should end", "check the indentation, or quote the text"),
    (r"unexpected end of stream", "the text ends inside a quoted value", "close the quote"),
    (r"but got '<stream end>'", "the text ends inside a bracket or brace", "close it"),
    (r"<document start>", "this line is indented less than the first one", "align it with the first line"),
    (r"<block end>", "this line does not line up with the lines above it", "indent it as much as its neighbours"),
    (r"another document", "a second YAML document starts here", "keep all specs in one document, each under its name"),
    (
        r"undefined alias '(.*)'",
        "*{0} stands for an anchor &{0}, which is not defined",
        "quote the text if it is no alias",
    ),
)


def _whole(text: str) -> Any:
    digits = text.replace("_", "")
    return int(digits, 0) if digits.lstrip("+-")[:2].lower() in {"0x", "0o", "0b"} else whole_number(digits)


SCALARS: dict[str, Callable[[str], Any]] = {
    "null": lambda text: None,
    "bool": lambda text: text.lower() in {"true", "yes", "on"},
    "int": _whole,
    "float": lambda text: float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan")),
    "str": str,
    "timestamp": str,
}


def read_yaml(source: Source, last_wins: bool = False) -> Document:
    """Parse a text of one YAML document; the data of an empty one is None.

    Of a key that is given twice the last one counts where `last_wins`, and the document says so; else it is an error.
    """
    from ruamel.yaml.error import MarkedYAMLError
    from ruamel.yaml.reader import ReaderError

    _check_version(source)
    try:
        return check_values(_Walk(source, last_wins).document(_parser().compose(source.text)))
    except _Limit as limit:
        raise limit.refuse(source, limit.at) from None
    except MarkedYAMLError as fault:
        raise report([_syntax_error(source, fault)]) from None
    except ReaderError as fault:
        at = source.span(fault.position, fault.position + 1)
        raise report([Diagnostic("a character that YAML does not allow", at, "remove it")]) from None


def _check_version(source: Source) -> None:
    """The parser would answer a version that it does not know in ways of its own."""
    found = VERSION.search(source.text)
    if found and found["version"] not in VERSIONS:
        cause = f"YAML {cut(found['version'], VALUE_WIDTH)} is not known here, only {' and '.join(VERSIONS)}"
        raise report([Diagnostic(cause, source.span(*found.span("version")), "leave the line out")])


class _Limit(Exception):
    """A text has gone beyond a limit, at an offset."""

    def __init__(self, refuse: Callable[[Source, int], SpecError], at: int) -> None:
        super().__init__()
        self.refuse = refuse
        self.at = at


def _parser() -> YAML:
    """A parser of YAML 1.2 that keeps to the limits."""
    from ruamel.yaml import YAML

    parser = YAML(typ="safe", pure=True)
    parser.Scanner, parser.Composer = _limited()
    parser.composer.warn_double_anchors = False  # YAML lets an anchor be moved, as anchors of several specs may be
    return parser


@cache
def _limited() -> tuple[type, type]:
    """A scanner that stops at a level too many, before what it keeps of every level is gone through for every token,
    and a composer that stops at a node too many."""
    from ruamel.yaml.composer import Composer
    from ruamel.yaml.scanner import Scanner

    class LimitedScanner(Scanner):
        def fetch_more_tokens(self) -> Any:
            if len(self.flow_context) + len(self.indents) > MAX_DEPTH:
                raise _Limit(too_deep, self.reader.index)
            return super().fetch_more_tokens()

    class LimitedComposer(Composer):
        nodes = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self.nodes += 1
            if self.nodes > MAX_NODES:
                raise _Limit(too_large, self.parser.peek_event().start_mark.index)
            return super().compose_node(parent, index)

    return LimitedScanner, LimitedComposer


class _Walk:
    """Turns a tree of YAML nodes into plain data and marks."""

    def __init__(self, source: Source, last_wins: bool) -> None:
        self.source = source
        self.last_wins = last_wins
        self.repeated: list[tuple[KeyPath, int, int]] = []
        self.marks: dict[KeyPath, Mark] = {}
        self.diagnostics: list[Diagnostic] = []
        self.open: list[int] = []
        self.left = MAX_NODES

    def document(self, node: Node | None) -> Document:
        data = None if node is None else self.value(node, ())
        if self.diagnostics:
            raise report(self.diagnostics)
        return Document(self.source, data, self.marks, tuple(self.repeated))

    def value(self, node: Node, path: KeyPath, key: Node | None = None) -> Any:
        from ruamel.yaml.nodes import MappingNode, ScalarNode

        self.count(node)
        self.marks[path] = Mark(self.span(node), None if key is None else self.span(key))
        if isinstance(node, ScalarNode):
            return self.scalar(node)
        self.open.append(id(node))
        try:
            if isinstance(node, MappingNode):
                return self.mapping(node, path)
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        finally:
            self.open.pop()

    def count(self, node: Node) -> None:
        """An alias is written once and read as often as it is named, perhaps inside of itself."""
        self.left -= 1
        if id(node) in self.open or self.left < 0:
            cause = "aliases make the document endless or too large"
            raise report([Diagnostic(cause, self.span(node), "write the values out")])
        if len(self.open) > MAX_DEPTH:
            raise _Limit(too_deep, node.start_mark.index)

    def mapping(self, node: MappingNode, path: KeyPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        merged: list[Node] = []
        for key, value in node.value:
            name = key.value
            if not isinstance(name, str):
                self.diagnostics.append(Diagnostic("a key must be plain text", self.span(key)))
            elif _tag(key) == "merge":
                merged.append(value)
            elif name in data and self.last_wins:
                data[name] = self.again((*path, name), value, key)
            elif name in data:
                first = self.marks[(*path, name)].key
                hint = f"first given on line {first.line}; keep one of them" if first else "keep one of them"
                self.diagnostics.append(Diagnostic(f"{name} is given twice", self.span(key), hint))
            else:
                data[name] = self.value(value, (*path, name), key)
        for value in merged:
            self.merge(value, data, path)
        return data

    def again(self, path: KeyPath, node: Node, key: Node) -> Any:
        """The value of a key that was given before, of which nothing is left."""
        first = self.marks[path].key
        self.repeated.append((path, first.line if first else 0, self.span(key).line))
        for inside in [at for at in self.marks if at[: len(path)] == path]:
            del self.marks[inside]
        return self.value(node, path, key)

    def merge(self, node: Node, data: dict[str, Any], path: KeyPath) -> None:
        """`<<: *base` gives the keys of `base`, and of what that merges, which the mapping does not give itself."""
        for base in node.value if _tag(node) == "seq" else [node]:
            self.count(base)
            if _tag(base) != "map":
                self.diagnostics.append(Diagnostic("<< takes a mapping, or a list of mappings", self.span(base)))
                continue
            self.open.append(id(base))
            own = [(key, value) for key, value in base.value if _tag(key) != "merge"]
            for key, value in own:
                self.left -= 1
                if isinstance(key.value, str) and key.value not in data:
                    data[key.value] = self.value(value, (*path, key.value), key)
            for key, value in base.value:
                if _tag(key) == "merge":
                    self.merge(value, data, path)
            self.open.pop()

    def scalar(self, node: ScalarNode) -> Any:
        try:
            return SCALARS[_tag(node)](node.value)
        except (KeyError, ValueError):
            tag = str(node.tag).replace("tag:yaml.org,2002:", "!!")
            cause = f"{cut(node.value, VALUE_WIDTH)} cannot be read as {tag}"
            self.diagnostics.append(Diagnostic(cause, self.span(node), "leave the tag out"))
            return None

    def span(self, node: Node) -> Span:
        return self.source.span(node.start_mark.index, node.end_mark.index)


def _tag(node: Node) -> str:
    """The last part of a standard YAML tag (`int`, `map`, `merge` ...); a private tag whole."""
    return str(node.tag).removeprefix("tag:yaml.org,2002:")


def _syntax_error(source: Source, fault: MarkedYAMLError) -> Diagnostic:
    mark = fault.problem_mark or fault.context_mark
    at = Span(source, 1, 1) if mark is None else source.span(mark.index, mark.index + 1)
    said = str(fault.problem)
    for pattern, cause, hint in PLAIN_WORDS:
        if found := re.search(pattern, said):
            return Diagnostic(cause.format(*found.groups()), at, hint)
    hint = 'write "${...}" in quotes inside brackets' if "${" in at.text else ""
    return Diagnostic(f"YAML cannot read this: {said}", at, hint)
