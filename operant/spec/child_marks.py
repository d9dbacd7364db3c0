"""What each setting does to a checkpoint, marked on the setting itself.

A child run goes on from its parent's checkpoint with some settings changed. A setting is `free` (any change leaves the
checkpoint what it is), `fixed` (with another value the checkpoint could not be loaded, would mean something else, or
the change would do nothing), or it `widens` (it may grow, and not shrink). A `section` is marked by its own settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field
from pydantic.fields import FieldInfo

Rule = Literal["free", "fixed", "widens", "section"]
KEY = "child"


@dataclass(frozen=True)
class Mark:
    """The rule of a setting in child runs, and for all but the free ones the reason."""

    rule: Rule
    why: str = ""


def free(**field: Any) -> Any:
    """A setting that a child may change at will."""
    return Field(json_schema_extra={KEY: "free"}, **field)


def fixed(why: str, /, **field: Any) -> Any:
    """A setting that a child has from its parent, because `why`."""
    return Field(json_schema_extra={KEY: "fixed", "why": why}, **field)


def widens(why: str, /, **field: Any) -> Any:
    """A number that a child may only raise; `why` that is safe."""
    return Field(json_schema_extra={KEY: "widens", "why": why}, **field)


def section(**field: Any) -> Any:
    """A group of settings, each with a mark of its own."""
    return Field(json_schema_extra={KEY: "section"}, **field)


def mark_of(field: FieldInfo) -> Mark | None:
    """The mark of a setting; None where it was forgotten."""
    extra = field.json_schema_extra
    if not isinstance(extra, dict) or KEY not in extra:
        return None
    return Mark(extra[KEY], str(extra.get("why", "")))  # pyright: ignore[reportArgumentType]
