from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from operant.spec.field_types import field_type, number
from operant.spec.fields import Closed
from operant.spec.registry import OneOf
from operant.spec.schedules import Linear, Schedule, Scheduled
from operant.spec.settings.algorithms import PpoSpec
from operant.spec.settings.memories import MEMORIES, PrioritisedReplaySpec, ReplaySpec
from operant.spec.settings.nets import OptimizerSpec


class Every(Closed):
    whole: int = Field(default=1, ge=1, le=65_536)
    above: float = Field(default=1.0, gt=0)
    between: float | None = Field(default=None, gt=0, lt=1)
    half_open: float = Field(default=0.0, ge=0, lt=1)
    switch: bool = False
    text: str = Field(default="a", min_length=1, max_length=9)
    pick: Literal["a", "b"] = "a"
    sizes: tuple[Annotated[int, Field(ge=1)], ...] = Field(default=(), max_length=3)
    rate: Annotated[Schedule, Scheduled(gt=0, le=1)] = 0.5
    memory: Annotated[ReplaySpec | PrioritisedReplaySpec, OneOf(MEMORIES)] | None = None
    optimizer: OptimizerSpec = OptimizerSpec()
    extra: dict[str, Any] = Field(default_factory=dict)


@pytest.mark.parametrize(
    ("name", "type_", "range_"),
    [
        ("whole", "whole number", "1 to 65,536"),
        ("above", "number", "above 0"),
        ("between", "number or null", "above 0, below 1"),
        ("half_open", "number", "0 or more, below 1"),
        ("switch", "true or false", ""),
        ("text", "text", "1 to 9 characters"),
        ("pick", "one of", "a, b"),
        ("sizes", "list of whole numbers", "at most 3 items; each 1 or more"),
        ("rate", "number or schedule", "above 0, at most 1"),
        ("memory", "section or null", ""),
        ("optimizer", "section", ""),
        ("extra", "mapping", ""),
    ],
)
def test_a_field_in_plain_words(name: str, type_: str, range_: str) -> None:
    kind = field_type(Every.model_fields[name])
    assert (kind.type, kind.range) == (type_, range_)


def test_a_section_is_the_one_that_the_data_asks_for() -> None:
    memory = field_type(Every.model_fields["memory"])
    assert memory.section_for({"name": "prioritised"}) is PrioritisedReplaySpec
    assert memory.section_for({"name": "no such"}) is ReplaySpec
    assert memory.section_for(None) is ReplaySpec
    assert field_type(Every.model_fields["rate"]).section_for(None) is Linear
    assert field_type(Every.model_fields["whole"]).section_for(None) is None


def test_the_nearest_value_is_a_bound_that_is_allowed() -> None:
    gamma, clip = (field_type(PpoSpec.model_fields[name]) for name in ("gamma", "clip_eps"))
    assert (gamma.nearest(-1), gamma.nearest(2), clip.nearest(7), clip.nearest(0)) == (0, 1, 1, None)


def test_numbers_are_written_for_people() -> None:
    assert [number(each) for each in (0, 65_536, 1e6, 0.5, 1e-5, -10)] == [
        "0",
        "65,536",
        "1,000,000",
        "0.5",
        "1e-05",
        "-10",
    ]
