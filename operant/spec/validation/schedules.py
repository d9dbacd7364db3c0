"""Validation of own schedules: their values must be numbers within the bounds of the setting, over the whole budget."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from operant.spec.field_types import field_type, number
from operant.spec.fields import Closed
from operant.spec.schedules import Linear, Scheduled, ScheduleSpec, value_at
from operant.spec.settings.sections import SpecFields
from operant.spec.validation.conflict import Conflict

LOOKED_AT = 64
"""Frames, evenly over the budget, at which the value of an own schedule is computed."""


def schedule_conflicts(spec: SpecFields) -> Iterable[Conflict]:
    """The first wrong value of each own schedule; a line is checked by its ends, when it is read."""
    sections: dict[str, Closed | None] = {"agent.algorithm": spec.agent.algorithm, "agent.memory": spec.agent.memory}
    for path, bounds, schedule, valid in _own_schedules(sections):
        reason = next(_wrong_values(schedule, bounds, spec.env.max_frame), None)
        if reason is not None:
            yield Conflict(path, reason, valid)


def _own_schedules(sections: dict[str, Closed | None]) -> Iterator[tuple[str, Scheduled, ScheduleSpec, str]]:
    for place, section in sections.items():
        for name, field in type(section).model_fields.items() if section is not None else ():
            schedule = getattr(section, name)
            bounds = next((each for each in field.metadata if isinstance(each, Scheduled)), None)
            if bounds is not None and isinstance(schedule, ScheduleSpec) and not isinstance(schedule, Linear):
                yield f"{place}.{name}", bounds, schedule, f"each value {field_type(field).range}"


def _wrong_values(schedule: ScheduleSpec, bounds: Scheduled, budget: int) -> Iterator[str]:
    for frame in dict.fromkeys(budget * step // LOOKED_AT for step in range(LOOKED_AT + 1)):
        try:
            value = value_at(schedule, frame)
        except Exception as problem:  # code of others may fail in any way
            yield f"cannot be computed at frame {frame:,}: {type(problem).__name__}: {problem}"
            return
        if not math.isfinite(value) or bounds.broken_by(value):
            yield f"is {number(value) if math.isfinite(value) else value} at frame {frame:,}"
