"""What a field accepts, in plain words: read off its annotation, used by errors, help and docs."""

from __future__ import annotations

import types
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from operant.spec.fields import Closed
from operant.spec.registry import OneOf
from operant.spec.schedules import SCHEDULES, Scheduled

WORDS = {int: "whole number", float: "number", bool: "true or false", str: "text", dict: "mapping"}
PLURALS = {"whole number": "whole numbers", "number": "numbers", "text": "texts"}


@dataclass(frozen=True)
class FieldType:
    """The values that a field accepts.

    `choices` is empty unless the values can be listed; `ge`, `gt`, `le`, `lt` bound numbers and
    `min_length`, `max_length` texts and lists; `item` is the type of a list's items; `section` is the
    class that may stand here, or `one_of` the registry of several; with `scheduled` a number may stand there too.
    """

    words: str = "anything"
    choices: tuple[str, ...] = ()
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    nullable: bool = False
    item: FieldType | None = None
    section: type[Closed] | None = None
    one_of: OneOf | None = None
    scheduled: bool = False

    def section_for(self, data: Any) -> type[Closed] | None:
        """The section that `data` asks for here, taking the default where it names none that exists."""
        if self.one_of is None:
            return self.section
        registry = self.one_of.registry
        return registry.get(self.one_of.name_in(data) or "", registry[self.one_of.default])

    @property
    def type(self) -> str:
        """The type in plain words, such as "number or null"."""
        return f"{self.words} or null" if self.nullable else self.words

    @property
    def range(self) -> str:
        """The values allowed, such as "above 0, at most 10"; empty when the type says it all."""
        if self.choices:
            return ", ".join(self.choices)
        if self.item is not None:
            return "; ".join(part for part in (self._length("items"), _each(self.item)) if part)
        if self.min_length is not None or self.max_length is not None:
            return self._length("characters")
        if self.ge is not None and self.le is not None:
            return f"{number(self.ge)} to {number(self.le)}"
        bounds = ((self.gt, "above {}"), (self.ge, "{} or more"), (self.lt, "below {}"), (self.le, "at most {}"))
        return ", ".join(words.format(number(bound)) for bound, words in bounds if bound is not None)

    def _length(self, unit: str) -> str:
        if self.min_length is None:
            return "" if self.max_length is None else f"at most {self.max_length} {unit}"
        if self.min_length == self.max_length:
            return f"{self.min_length} {unit}"
        return f"{self.min_length} to {self.max_length} {unit}"

    def nearest(self, value: float) -> float | None:
        """The bound that `value` broke, where that bound itself is allowed."""
        if self.ge is not None and value < self.ge:
            return self.ge
        return self.le if self.le is not None and value > self.le else None


def field_type(field: FieldInfo) -> FieldType:
    """The type of a field of a spec class."""
    return _type_of(field.annotation, field.metadata)


def _type_of(annotation: Any, metadata: Iterable[Any]) -> FieldType:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_of(args[0], (*args[1:], *metadata))
    if origin in (Union, types.UnionType):
        found = _union(args, metadata)
    elif origin is Literal:
        found = FieldType("one of", choices=tuple(str(each) for each in args))
    elif origin is tuple:
        item = _type_of(args[0], ())
        found = FieldType(f"list of {PLURALS.get(item.words, item.words.replace('list of', 'lists of', 1))}", item=item)
    elif isinstance(annotation, type) and issubclass(annotation, Closed):
        found = FieldType("section", section=annotation)
    else:
        found = FieldType(WORDS.get(origin or annotation, "anything"))
    return _bounded(found, metadata)


def _union(args: tuple[Any, ...], metadata: Iterable[Any]) -> FieldType:
    """An alternative of plain types; only null and, marked as such, schedules and registries mix."""
    if any(isinstance(each, Scheduled) for each in metadata):
        return FieldType("number or schedule", one_of=OneOf(SCHEDULES), scheduled=True)
    plain = [_type_of(each, ()) for each in args if each is not type(None)]
    section = next((each.section for each in plain if each.section), None)
    return replace(plain[0], section=section, nullable=len(plain) < len(args))


def _bounded(found: FieldType, metadata: Iterable[Any]) -> FieldType:
    """The type with the bounds that annotations and `Field(...)` put on it."""
    for each in metadata:
        if isinstance(each, FieldInfo):
            found = _bounded(found, each.metadata)
        elif isinstance(each, OneOf):
            found = replace(found, words="section", one_of=each)
        else:
            names = ("ge", "gt", "le", "lt", "min_length", "max_length")
            bounds = {name: getattr(each, name, None) for name in names}
            found = replace(found, **{name: bound for name, bound in bounds.items() if bound is not None})
    return found


def _each(item: FieldType) -> str:
    return item.range if item.item else f"each {item.range}" if item.range else ""


def number(value: float) -> str:
    """A number for people: 0.5, 1e-05, 65,536."""
    if float(value).is_integer() and abs(value) < 1e16:
        return f"{int(value):,}"
    return f"{value:g}"
