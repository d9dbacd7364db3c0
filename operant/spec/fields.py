"""The base of every spec class, and the rules of its fields.

Every setting also says what it does to a checkpoint. A fork of a run goes on from its parent's checkpoint with some
settings changed. A setting is `free` (any change leaves the checkpoint what it is), `fixed` (with another value the
checkpoint could not be loaded, would mean something else, or the change would do nothing), or it `widens` (it may grow,
and not shrink). A `section` has the rules of its own settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic.fields import FieldInfo

Rule = Literal["free", "fixed", "widens", "section"]
KEY = "fork"


@dataclass(frozen=True)
class ForkRule:
    """Whether a fork of a run may change a setting, and for all but the free ones the reason."""

    kind: Rule
    why: str = ""


def free(**field: Any) -> Any:
    """A setting that a fork may change at will."""
    return Field(json_schema_extra={KEY: "free"}, **field)


def fixed(why: str, /, **field: Any) -> Any:
    """A setting that a fork has from its parent, because `why`."""
    return Field(json_schema_extra={KEY: "fixed", "why": why}, **field)


def widens(why: str, /, **field: Any) -> Any:
    """A number that a fork may only raise; `why` that is safe."""
    return Field(json_schema_extra={KEY: "widens", "why": why}, **field)


def section(**field: Any) -> Any:
    """A group of settings, each with a rule of its own."""
    return Field(json_schema_extra={KEY: "section"}, **field)


def fork_rule(field: FieldInfo) -> ForkRule | None:
    """The rule of a setting in forks; None where it was forgotten."""
    extra = field.json_schema_extra
    if not isinstance(extra, dict) or KEY not in extra:
        return None
    return ForkRule(extra[KEY], str(extra.get("why", "")))  # pyright: ignore[reportArgumentType]


class Closed(BaseModel):
    """A frozen mapping whose keys are all known and whose values are never guessed at.

    An unknown key is an error, and so is text where a number belongs. Two spellings are taken
    because files have no other: a whole number in exponent form (`4e6`) and a list for a tuple.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, protected_namespaces=())

    def fixed_in_fork(self) -> Mapping[str, str]:
        """The settings that a fork may not change as these others stand, each with the reason."""
        return {}

    @field_validator("*", mode="before")
    @classmethod
    def _from_file(cls, value: Any, info: ValidationInfo) -> Any:
        annotation = cls.model_fields[str(info.field_name)].annotation
        if isinstance(value, float) and value.is_integer() and takes(annotation, int) and not takes(annotation, float):
            return int(value)
        return _as_tuple(value, annotation) if isinstance(value, list) and takes(annotation, tuple) else value


def _as_tuple(value: list, annotation: Any) -> tuple:
    """`value` as a tuple, and so are the lists in it where the field holds tuples of tuples."""
    nested = any(takes(part, tuple) for part in get_args(annotation))
    return tuple(tuple(each) if nested and isinstance(each, list) else each for each in value)


def takes(annotation: Any, kind: type) -> bool:
    """Whether a field so annotated can hold a `kind`, alone or among alternatives."""
    origin = get_origin(annotation)
    if annotation is kind or origin is kind:
        return True
    return origin not in (None, tuple, dict) and any(takes(part, kind) for part in get_args(annotation))
