"""Schedules: values that change with the frames of a run, such as epsilon, an entropy coefficient or a clip range.

A setting that takes one is annotated `Annotated[Schedule, Scheduled(ge=0, le=1)]`: a number, a line between two frames,
or anybody's schedule by `module:Class` or by an entry point of the group `operant.schedules`.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, InitErrorDetails, ValidationError, core_schema

from operant.spec.fields import Closed, free
from operant.spec.registry import OneOf, PartRegistry


class ScheduleSpec(Closed):
    """The base of every schedule, own ones included (abstract): its fields are its settings."""

    name: Any  # each schedule narrows it to its own Literal

    @abstractmethod
    def at(self, frame: Any) -> Any:
        """The value at `frame`, a function of the frame and the settings alone.

        The torch and language engines call it with a whole number and want a number. The jax engine calls it while it
        compiles, with a traced number: operators and `jax.numpy` can be traced, `math`, `min` and `if` cannot.
        """


class Linear(ScheduleSpec):
    """A value that moves in a straight line between two frames and then stays."""

    name: Literal["linear"] = free(default="linear", description="Schedule.")
    start: float = free(description="Value until frame `begin`.")
    end: float = free(description="Value from frame `begin + frames` on; may be above or below `start`.")
    begin: int = free(default=0, ge=0, le=10**12, description="Frame at which the change begins.")
    frames: int = free(ge=1, le=10**12, description="How many frames the change takes.")

    def at(self, frame: int) -> float:
        """The value at `frame`."""
        done = min(max(frame - self.begin, 0) / self.frames, 1.0)
        return self.start + (self.end - self.start) * done


SCHEDULES = PartRegistry("schedule.name", ScheduleSpec, {"linear": Linear})
Schedule = float | ScheduleSpec


def value_at(schedule: Schedule, frame: int) -> float:
    """The value of a constant or a schedule at `frame`."""
    return float(schedule.at(frame) if isinstance(schedule, ScheduleSpec) else schedule)


FAULT_OF_BOUND = {"ge": "greater_than_equal", "gt": "greater_than", "le": "less_than_equal", "lt": "less_than"}


@dataclass(frozen=True)
class Scheduled:
    """Marks a `Schedule` field and bounds it: a constant, or both ends of a line, must lie within.

    The values of an own schedule are held against the bounds once the budget is known: `operant.spec.validation`.
    """

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        number = core_schema.float_schema(ge=self.ge, gt=self.gt, le=self.le, lt=self.lt)
        one_of = handler.generate_schema(Annotated[ScheduleSpec, OneOf(SCHEDULES)])
        schedule = core_schema.no_info_after_validator_function(self._check_ends, one_of)
        return core_schema.tagged_union_schema({"number": number, "schedule": schedule}, discriminator=_shape)

    def broken_by(self, value: float) -> list[str]:
        """The bounds that a value breaks, such as "ge"."""
        bounds = {key: bound for key, bound in asdict(self).items() if bound is not None}
        return [key for key, bound in bounds.items() if not getattr(operator, key)(value, bound)]

    def _check_ends(self, schedule: ScheduleSpec) -> ScheduleSpec:
        if not isinstance(schedule, Linear):
            return schedule
        faults = [
            InitErrorDetails(type=FAULT_OF_BOUND[key], loc=(end,), input=value, ctx={key: getattr(self, key)})
            for end, value in (("start", schedule.start), ("end", schedule.end))
            for key in self.broken_by(value)
        ]
        if faults:
            raise ValidationError.from_exception_data("schedule", faults)
        return schedule


def _shape(value: Any) -> str:
    return "schedule" if isinstance(value, Mapping | ScheduleSpec) else "number"
