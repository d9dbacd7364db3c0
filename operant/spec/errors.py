"""Errors that pydantic found in a spec, as diagnostics at the place where each was written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from operant.errors import SpecError, UsageError
from operant.spec.field_types import FieldType, number
from operant.spec.fields import Closed
from operant.spec.paths import REGISTRIES, find, help_command, kind_of, known_paths, owner_of, title
from operant.spec.reading.diagnostics import MAX_SHOWN, Diagnostic, did_you_mean, nearest, order, report, shown
from operant.spec.reading.document import Document, KeyPath, Span, lookup
from operant.spec.registry import NOT_FOUND
from operant.spec.schedules import Linear
from operant.spec.schema import Spec
from operant.spec.validation.conflict import Conflict

TRUE_WORDS, FALSE_WORDS = {"yes", "on", "y", "true"}, {"no", "off", "n", "false"}


def spec_error(fault: ValidationError, document: Document) -> SpecError:
    """All that pydantic found wrong with the data of a document, as one report."""
    problems = diagnostics_in(fault, document, MAX_SHOWN)
    return report(problems, document.source.label, fault.error_count() - len(problems))


def diagnostics_in(fault: ValidationError, document: Document, most: int | None = None) -> list[Diagnostic]:
    """One diagnostic per error; at most so many, those that were written first.

    What was perhaps meant is a search among all settings, and the data may have thousands that are none.
    """
    faults = [(written_path(each["loc"], document.data), each) for each in fault.errors(include_url=False)]
    if most is not None and len(faults) > most:
        faults = sorted(faults, key=lambda each: order(key_span(each[0], document)))[:most]
    return [TELLERS.get(detail["type"], _wrong_type)(path, detail, document) for path, detail in faults]


def is_only_conflict(fault: ValidationError) -> bool:
    """Whether every field is valid by itself, and only their combination is at fault."""
    return all(detail["type"] == "conflict" for detail in fault.errors(include_url=False))


def written_path(loc: KeyPath, data: Any) -> KeyPath:
    """A fault's location as a person wrote it, without the names of the alternatives tried."""
    path: KeyPath = ()
    for index, part in enumerate(loc):
        present = part in data if isinstance(data, dict) else isinstance(data, list) and isinstance(part, int)
        if present or (isinstance(data, dict) and index == len(loc) - 1):
            path, data = (*path, part), lookup(data, (part,))
    return path


def span_of(path: KeyPath, document: Document) -> Span | None:
    """Where the value at `path` was written; the key of a section or a null, or of the nearest ancestor."""
    found = document.mark_of(path)
    if found is None:
        return None
    at, mark = found
    value = lookup(document.data, path)
    is_visible = at == path and value is not None and not isinstance(value, dict)
    return mark.value if is_visible or mark.key is None else mark.key


def key_span(path: KeyPath, document: Document) -> Span | None:
    """Where the key at `path` was written; its nearest ancestor's when it never was."""
    found = document.mark_of(path)
    return (found[1].key or found[1].value) if found else None


def dotted(path: KeyPath) -> str:
    """A path as `-s` takes it."""
    return ".".join(str(part) for part in path)


def _unknown(path: KeyPath, detail: ErrorDetails, document: Document) -> Diagnostic:
    return unknown_setting(path, document)


def unknown_setting(path: KeyPath, document: Document) -> Diagnostic:
    """There is no setting at `path`; which one was meant?"""
    owner = owner_of(path, document.data)
    cause = f"{dotted(path)} is not a {'section' if owner is Spec else 'setting'} of {title(owner)}"
    hint = suggestion(str(path[-1]), owner, document.data) or f"it has {', '.join(owner.model_fields)}"
    return Diagnostic(cause, key_span(path, document), hint, help_command(owner))


def suggestion(key: str, owner: type[Closed], data: Any) -> str:
    """What an unknown key of a section was perhaps meant to be; empty when nothing is near."""
    return next(_suggestions(key, owner, data), "")


def _suggestions(key: str, owner: type[Closed], data: Any) -> Iterator[str]:
    """The likeliest first: the same key elsewhere, or of another choice; then keys that look like it."""
    paths = list(known_paths(data))
    # A word that many sections have, such as `name`, says nothing about which of them was meant.
    same = [path for path in paths if path[-1] == key and (len(path) > 1 or owner is Spec)]
    if len(same) <= 2:
        yield from (f"did you mean {dotted(path)}?" for path in same)
    for registry in REGISTRIES.values():
        if registry.name_of(owner):
            yield from (f"it is a setting of {name}" for name, model in registry.items() if key in model.model_fields)
    if sibling := nearest(key, owner.model_fields):
        yield f"did you mean {sibling}?"
    leaf = nearest(key, (path[-1] for path in paths))
    yield from (f"did you mean {dotted(path)}?" for path in paths if path[-1] == leaf != key)


def _missing(path: KeyPath, detail: ErrorDetails, document: Document) -> Diagnostic:
    slot, owner = find(path, document.data), owner_of(path, document.data)
    about = (slot.field.description or "").rstrip(".") if slot else ""
    hint = f"it needs {path[-1]}: {about[:1].lower()}{about[1:]}"
    return Diagnostic(f"{dotted(path)} is missing", span_of(path, document), hint, help_command(owner))


def _conflict(path: KeyPath, detail: ErrorDetails, document: Document) -> Diagnostic:
    conflict: Conflict = detail.get("ctx", {})["conflict"]
    value = _written(path, detail, document)
    said = "" if isinstance(value, Closed | dict) else f" = {shown(value)}"
    fix = f"add -s {conflict.path}={shown(conflict.fix)}" if conflict.fix is not None else None
    remedy = fix or help_command(owner_of(path, document.data))
    return Diagnostic(f"{conflict.path}{said} {conflict.reason}", _blame(conflict, document), conflict.valid, remedy)


def _written(path: KeyPath, detail: ErrorDetails, document: Document) -> Any:
    """The value as it was written, or what it was by default."""
    return lookup(document.data, path) if path in document.marks else detail["input"]


def _blame(conflict: Conflict, document: Document) -> Span | None:
    """Of the settings involved, the one a person wrote: on the command line, else in the file."""
    paths = [tuple(path.split(".")) for path in (conflict.path, *conflict.others)]
    written = [path for path in paths if path in document.marks]
    overridden = [path for path in written if document.marks[path].value.source.label is None]
    return span_of(next(iter(overridden + written + paths)), document)


def _choice(path: KeyPath, detail: ErrorDetails, document: Document) -> Diagnostic:
    value, slot = detail["input"], find(path, document.data)
    choices = slot.type.choices if slot else ()
    return _not_one_of(path, value, choices, document)


def _not_one_of(path: KeyPath, value: Any, choices: tuple[str, ...], document: Document) -> Diagnostic:
    cause = f"{dotted(path)} = {shown(value)} is not one of {', '.join(choices)}"
    remedy = help_command(owner_of(path, document.data))
    return Diagnostic(cause, span_of(path, document), did_you_mean(str(value), choices), remedy)


def _unknown_name(path: KeyPath, detail: ErrorDetails, document: Document) -> Diagnostic:
    """No such algorithm, net or memory."""
    slot = find(path, document.data)
    if slot is None:  # the fault's location ends with the name of an alternative, such as a schedule beside a number
        path = path[:-1]
        slot = find(path, document.data)
    one_of = slot.type.one_of if slot else None
    if one_of is None:
        return _wrong_type(path, detail, document)
    name, choices = detail["input"].get(one_of.tag), tuple(one_of.names)
    is_key = isinstance(path[-1], int) and isinstance(lookup(document.data, path[:-1]), dict)
    problem = _not_one_of((*path[:-1], name) if is_key else (*path, one_of.tag), name, choices, document)
    return Diagnostic(problem.cause, problem.at, problem.hint, f"operant help {kind_of(one_of.registry)}")


def _no_part(path: KeyPath, detail: ErrorDetails, document: Document) -> Diagnostic:
    """An own part that cannot be loaded; the cause begins with the setting that names such parts, wherever it is."""
    problem: UsageError = detail.get("ctx", {})["problem"]
    cause = f"{dotted(path)}: {problem.cause.partition(': ')[2]}"
    return Diagnostic(cause, span_of(path, document), "", problem.remedy or "")


def _out_of_range(path: KeyPath, detail: ErrorDetails, document: Document) -> Diagnostic:
    slot, owner = find(path, document.data), owner_of(path, document.data)
    value = _written(path, detail, document)
    if owner is Linear and slot is not None and not slot.type.range:
        slot = find(path[:-1], document.data)
    accepted = slot.type if slot else FieldType()
    hint = f"must be {accepted.range}" if accepted.range else "must be finite"
    bound = accepted.nearest(value) if isinstance(value, int | float) else None
    hint += f"; nearest: {number(bound).replace(',', '')}" if bound is not None else ""
    cause = f"{dotted(path)} = {shown(value)} is out of range"
    return Diagnostic(cause, span_of(path, document), hint, help_command(owner))


def _pattern(path: KeyPath, detail: ErrorDetails, document: Document) -> Diagnostic:
    slot = find(path, document.data)
    hint = str(slot.field.description).rstrip(".").partition("; ")[2] if slot else ""
    cause = f"{dotted(path)} = {shown(detail['input'])} has characters that do not belong"
    return Diagnostic(cause, span_of(path, document), hint, help_command(owner_of(path, document.data)))


def _not_plain(path: KeyPath, detail: ErrorDetails, document: Document) -> Diagnostic:
    cause = f"{dotted(path)} = {shown(detail['input'])} cannot be stored"
    return Diagnostic(cause, span_of(path, document), detail["msg"], help_command(owner_of(path, document.data)))


def _wrong_type(path: KeyPath, detail: ErrorDetails, document: Document) -> Diagnostic:
    value, slot, owner = detail["input"], find(path, document.data), owner_of(path, document.data)
    accepted = slot.type if slot else FieldType()
    default = slot.field.get_default(call_default_factory=True) if slot else None
    cause = f"{dotted(path)} = {shown(value)} is not {with_article(accepted.type)}"
    return Diagnostic(cause, span_of(path, document), _right_type(path, value, accepted, default), help_command(owner))


def with_article(words: str) -> str:
    """Plain type words fit for a sentence: "a number or null", "true or false", "text"."""
    return words if words.startswith(("true", "text", "anything")) else f"a {words}"


def _right_type(path: KeyPath, value: Any, accepted: FieldType, default: Any) -> str:
    """How the value was perhaps meant."""
    if value is None:
        keeps = "" if isinstance(default, Closed) else f", {shown(default)}"
        return f"leave the line out to keep the default{keeps}"
    if accepted.words == "section":
        section, tag = accepted.section_for(None), accepted.one_of.tag if accepted.one_of else "name"
        is_name = isinstance(value, str) and section is not None and tag in section.model_fields
        return f"did you mean {dotted((*path, tag))}?" if is_name else ""
    if accepted.words == "true or false" and str(value).lower() in TRUE_WORDS | FALSE_WORDS:
        return f"did you mean {'true' if str(value).lower() in TRUE_WORDS else 'false'}?"
    if accepted.item is not None and not isinstance(value, list | dict):
        return f"did you mean [{shown(value)}]?"
    if "number" in accepted.words and isinstance(value, str) and _is_number(value):
        return "remove the quotes"
    if accepted.words == "whole number" and isinstance(value, float) and math.isfinite(value):
        return f"nearest: {math.floor(value)} or {math.ceil(value)}"
    return "put it in quotes" if accepted.words == "text" and not isinstance(value, list | dict) else ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


Teller = Callable[[KeyPath, ErrorDetails, Document], Diagnostic]
TELLERS: dict[str, Teller] = {
    NOT_FOUND: _no_part,
    "extra_forbidden": _unknown,
    "missing": _missing,
    "conflict": _conflict,
    "literal_error": _choice,
    "union_tag_invalid": _unknown_name,
    "string_pattern_mismatch": _pattern,
    "not_plain": _not_plain,
    **dict.fromkeys(("greater_than", "greater_than_equal", "less_than", "less_than_equal"), _out_of_range),
    **dict.fromkeys(("string_too_short", "string_too_long", "too_short", "too_long"), _out_of_range),
    "finite_number": _out_of_range,
}
