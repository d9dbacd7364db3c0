"""`-s name=value`: fills a `${name}` placeholder of the spec, or sets any field by its dotted path.

`${name:-value}` is a placeholder with a default. One called `env` also names the run: a spec that is
trained on many environments keeps their runs apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from operant.errors import SpecError
from operant.spec.errors import dotted, suggestion
from operant.spec.paths import find, help_command
from operant.spec.reading.diagnostics import MAX_LISTED, MAX_SHOWN, Diagnostic, did_you_mean, report
from operant.spec.reading.document import Document, KeyPath, Mark, Source, Span, leaves, lookup
from operant.spec.reading.limits import MAX_BYTES, MAX_DEPTH, MAX_NODES, too_deep, too_large
from operant.spec.reading.yaml import read_yaml
from operant.spec.schedules import Linear
from operant.spec.schema import Spec

PLACEHOLDER = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^{}]*))?\}")
ENVIRONMENT = "env"


@dataclass(frozen=True)
class Override:
    """One `-s`: the words before the `=`, and the value after it with its marks."""

    key: str
    value: Document

    def part_span(self, index: int) -> Span:
        """Where one part of the dotted key was typed."""
        parts = self.key.split(".")
        return Span(self.value.source, 1, sum(len(part) + 1 for part in parts[:index]) + 1, len(parts[index]))


def apply(document: Document, texts: Sequence[str]) -> Document:
    """The document with every override in place and no placeholder left open."""
    overrides = [parse(text) for text in texts]
    open_names = placeholders(document)
    values = {each.key: each.value for each in overrides if each.key in open_names}
    filled = _defaulted(_filled(_called_after(document, values), values))
    settings = [each for each in overrides if each.key not in open_names]
    problems = [*_matching_nothing(settings, list(open_names), document), *_leftovers(filled)]
    if problems:
        raise report(problems, document.source.label)
    for override in settings:
        filled = _set(filled, override)
    return filled


def fill(document: Document, texts: Sequence[str]) -> tuple[Document, list[str]]:
    """The document with every placeholder filled, and the overrides that name none of them."""
    open_names = placeholders(document)
    overrides = [parse(text) for text in texts]
    values = {each.key: each.value for each in overrides if each.key in open_names}
    filled = _defaulted(_filled(_called_after(document, values), values))
    problems = list(_leftovers(filled))
    if problems:
        raise report(problems, document.source.label)
    return filled, [text for text, each in zip(texts, overrides, strict=True) if each.key not in values]


def parse(text: str) -> Override:
    """Read `a.b.c=value`, the value in YAML 1.2."""
    key, _, raw = text.partition("=")
    source, start, key = Source(text), len(text) - len(raw), key.strip()
    if not key or "" in key.split("."):
        raise _bad(source, max(key.find(".."), 0), "the override has an empty name", "NAME=VALUE")
    if key.count(".") >= MAX_DEPTH:
        raise too_deep(source, 0)
    try:
        value = read_yaml(Source(" " * start + raw))
    except SpecError as fault:
        why = fault.cause.partition("\n")[0]
        raise _bad(source, start, f"the value cannot be read as YAML: {why}", "put the text in quotes") from None
    if () not in value.marks:
        raise _bad(source, start, "the override has no value", "write null if that is meant")
    marks = {path: _moved(mark, source) for path, mark in value.marks.items()}
    return Override(key, Document(source, value.data, marks))


def _bad(source: Source, at: int, cause: str, hint: str) -> SpecError:
    remedy = "write -s NAME=VALUE, such as -s agent.algorithm.gamma=0.98"
    return report([Diagnostic(cause, source.span(at, len(source.text)), hint, remedy)])


def _moved(mark: Mark, source: Source) -> Mark:
    return Mark(replace(mark.value, source=source), mark.key and replace(mark.key, source=source))


def placeholders(document: Document) -> dict[str, list[KeyPath]]:
    """The names of the open placeholders, each with the paths that wait for it."""
    names: dict[str, list[KeyPath]] = {}
    for path, value in leaves(document.data):
        for found in PLACEHOLDER.finditer(value) if isinstance(value, str) else ():
            names.setdefault(found["name"], []).append(path)
    return names


def _filled(document: Document, values: dict[str, Document]) -> Document:
    """A value that is nothing but a placeholder takes the type of what fills it; others stay text."""
    pieces: dict[KeyPath, Document] = {}
    size = len(document.marks)
    for path, text in leaves(document.data) if values else ():
        names = [found["name"] for found in PLACEHOLDER.finditer(text)] if isinstance(text, str) else []
        given = [values[name] for name in names if name in values]
        if not given:
            continue
        piece = given[0] if PLACEHOLDER.fullmatch(text) else _interpolated(text, values, given[0], document)
        mark = document.marks.get(path, piece.marks[()])
        is_open = isinstance(piece.data, str) and PLACEHOLDER.search(piece.data)
        own = mark if is_open else replace(piece.marks[()], key=mark.key)
        pieces[path] = replace(piece, marks={**piece.marks, (): own})
        size += len(piece.marks)
        if size > MAX_NODES:
            raise too_large(document.source, 0)
    return document.refilled(pieces)


def _interpolated(text: str, values: dict[str, Document], first: Document, document: Document) -> Document:
    """The text with the placeholders that have a value replaced, to be blamed on the first of them."""
    words = {name: str(value.data) for name, value in values.items()}

    def inserted(found: re.Match[str]) -> str:
        return words.get(found["name"], found[0])

    if sum(len(inserted(found)) for found in PLACEHOLDER.finditer(text)) > MAX_BYTES:
        raise too_large(document.source, 0)
    return replace(first, data=PLACEHOLDER.sub(inserted, text))


def _defaulted(document: Document) -> Document:
    """The document with every placeholder that still waits, but has a default, filled by it."""
    pieces: dict[KeyPath, Document] = {}
    for path, text in leaves(document.data):
        found = list(PLACEHOLDER.finditer(text)) if isinstance(text, str) else []
        values = {each["name"]: parse(f"{each['name']}={each['default']}").value for each in found if each["default"]}
        if not values:
            continue
        whole = len(values) == 1 and PLACEHOLDER.fullmatch(text)
        first = next(iter(values.values()))
        data = first.data if whole else _interpolated(text, values, first, document).data
        mark = document.marks.get(path)
        pieces[path] = Document(document.source, data, {} if mark is None else {(): mark})
    return document.refilled(pieces)


def _called_after(document: Document, values: dict[str, Document]) -> Document:
    """The document, its name ending in that of the environment that was given: ALE/Pong-v5 adds `_pong`.

    A name that holds placeholders of its own stays as its author meant it.
    """
    given = values.get(ENVIRONMENT)
    name = document.data.get("name") if isinstance(document.data, dict) else None
    if given is None or not isinstance(given.data, str) or not isinstance(name, str) or PLACEHOLDER.search(name):
        return document
    short = re.sub(r"-v\d+$", "", re.split(r"[/:.]", given.data)[-1])
    suffix = re.sub(r"[^a-z0-9-]+", "", short.lower())
    return replace(document, data={**document.data, "name": f"{name}_{suffix}" if suffix else name})


def _set(document: Document, override: Override) -> Document:
    """Put the value at its dotted path, starting from the default where that is a schedule."""
    path: KeyPath = ()
    document = _without_dimension(document, override.key)
    for index, part in enumerate(override.key.split(".")):
        document = _with_default_schedule(document, path, part)
        inside, at = lookup(document.data, path), override.part_span(index)
        path = (*path, _index(inside, part, at) if isinstance(inside, list) else part)
        if not isinstance(lookup(document.data, path), dict | list):
            document = replace(document, marks={**document.marks, path: Mark(at, at)})
    key = override.part_span(len(path) - 1)
    marks = {**override.value.marks, (): replace(override.value.marks[()], key=key)}
    return document.placed(path, replace(override.value, marks=marks))


def _without_dimension(document: Document, key: str) -> Document:
    """`-s search.agent.algorithm.gamma__uniform=[...]` takes the place of what was said of that setting before."""
    section, _, dimension = key.partition(".")
    search = document.data.get("search") if isinstance(document.data, dict) else None
    if section != "search" or not isinstance(search, dict):
        return document
    stem = dimension.partition("__")[0]
    kept = {name: body for name, body in search.items() if str(name).partition("__")[0] != stem}
    return replace(document, data={**document.data, "search": kept})


def _index(items: list[Any], part: str, at: Span) -> int:
    if part.isdecimal() and int(part) < len(items):
        return int(part)
    hint = f"items 0 to {len(items) - 1}" if items else "it is empty"
    raise report([Diagnostic(f"{part} is not an item of a list of {len(items)}", at, hint)])


def _with_default_schedule(document: Document, path: KeyPath, part: str) -> Document:
    """`-s ...epsilon.end=0.1` changes one end of the default line rather than asking for the rest.

    With `-s ...epsilon.name=...` another schedule is asked for, which has settings of its own.
    """
    slot = find(path, document.data)
    default = slot.field.default if slot else None
    if not isinstance(default, Linear) or part == "name" or isinstance(lookup(document.data, path), dict):
        return document
    mark = document.marks.get(path)
    empty = Document(document.source, default.model_dump(exclude={"name"}), {(): mark} if mark else {})
    return document.placed(path, empty)


def _matching_nothing(overrides: Sequence[Override], names: list[str], document: Document) -> Iterator[Diagnostic]:
    """A single word is a placeholder or a top setting; anything else was a slip."""
    slips = [each for each in overrides if "." not in each.key and each.key not in Spec.model_fields]
    for index, override in enumerate(slips):
        key, hint = override.key, ""
        if index < MAX_SHOWN:
            hint = did_you_mean(key, names) or suggestion(key, Spec, document.data)
        cause = f"{key} is neither a setting nor a placeholder of this spec"
        yield Diagnostic(cause, override.part_span(0), hint, help_command(Spec))


def _leftovers(document: Document) -> Iterator[Diagnostic]:
    left = placeholders(document)
    remedy = "add " + " ".join(f"-s {name}=VALUE" for name in list(left)[:MAX_LISTED])
    for name, paths in left.items():
        for path in paths:
            found = document.mark_of(path)
            yield Diagnostic(
                f"{dotted(path)} waits for ${{{name}}}", found[1].value if found else None, "not set", remedy
            )
