"""The base of every spec class, and the types of value that several of them share.

Every setting also says what it does to a checkpoint. A fork of a run goes on from its parent's checkpoint with some
settings changed. A setting is `free` (any change leaves the checkpoint what it is), `fixed` (with another value the
checkpoint could not be loaded, would mean something else, or the change would do nothing), or it `widens` (it may grow,
and not shrink). A `section` has the rules of its own settings.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, InitErrorDetails, ValidationError, core_schema

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


class Linear(Closed):
    """A value that moves in a straight line between two frames and then stays."""

    start: float = free(description="Value until frame `begin`.")
    end: float = free(description="Value from frame `begin + frames` on; may be above or below `start`.")
    begin: int = free(default=0, ge=0, le=10**12, description="Frame at which the change begins.")
    frames: int = free(ge=1, le=10**12, description="How many frames the change takes.")

    def at(self, frame: int) -> float:
        """The value at `frame`."""
        done = min(max(frame - self.begin, 0) / self.frames, 1.0)
        return self.start + (self.end - self.start) * done


Schedule = float | Linear


def value_at(schedule: Schedule, frame: int) -> float:
    """The value of a constant or a schedule at `frame`."""
    return schedule.at(frame) if isinstance(schedule, Linear) else float(schedule)


FAULT_OF_BOUND = {"ge": "greater_than_equal", "gt": "greater_than", "le": "less_than_equal", "lt": "less_than"}


@dataclass(frozen=True)
class Scheduled:
    """Marks a `Schedule` field and bounds it: a constant, or both ends of a line, must lie within."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        number = core_schema.float_schema(ge=self.ge, gt=self.gt, le=self.le, lt=self.lt)
        line = core_schema.no_info_after_validator_function(self._check_ends, handler.generate_schema(Linear))
        return core_schema.tagged_union_schema({"number": number, "line": line}, discriminator=_shape)

    def _check_ends(self, line: Linear) -> Linear:
        bounds = {key: bound for key, bound in asdict(self).items() if bound is not None}
        faults = [
            InitErrorDetails(type=FAULT_OF_BOUND[key], loc=(end,), input=value, ctx={key: bound})
            for end, value in (("start", line.start), ("end", line.end))
            for key, bound in bounds.items()
            if not getattr(operator, key)(value, bound)
        ]
        if faults:
            raise ValidationError.from_exception_data("schedule", faults)
        return line


def _shape(value: Any) -> str:
    return "line" if isinstance(value, Mapping | Linear) else "number"
