from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError

from operant.spec.fields import Closed
from operant.spec.registry import OneOf
from operant.spec.schedules import Linear, Schedule, Scheduled, value_at


class Box(Closed):
    count: int = 1
    weight: float = 1.0
    sizes: tuple[int, ...] = ()
    limit: int | None = None
    rate: Annotated[Schedule, Scheduled(gt=0, le=1)] = 0.5


class Round(Closed):
    name: Literal["round"] = "round"
    radius: float = Field(default=1.0, gt=0)


class Square(Closed):
    name: Literal["square"] = "square"
    side: float = Field(default=1.0, gt=0)


class Holder(Closed):
    shape: Annotated[Round | Square, OneOf({"round": Round, "square": Square})] = Round()


def kinds_of_fault(error: ValidationError) -> list[tuple[tuple[str | int, ...], str]]:
    return [(fault["loc"], fault["type"]) for fault in error.errors()]


def test_whole_numbers_may_be_written_in_exponent_form() -> None:
    box = Box.model_validate({"count": 4e6, "limit": 1e3})
    assert (box.count, box.limit) == (4_000_000, 1000)
    assert isinstance(box.count, int)


def test_lists_become_tuples_and_whole_numbers_floats() -> None:
    box = Box.model_validate({"sizes": [1, 2], "weight": 3})
    assert box.sizes == (1, 2)
    assert isinstance(box.weight, float)


@pytest.mark.parametrize(
    "data",
    [
        {"count": "3"},
        {"count": True},
        {"count": 1.5},
        {"weight": "1"},
        {"weight": True},
        {"weight": float("inf")},
        {"sizes": ["1"]},
        {"sizes": [1.0]},
        {"sizes": 3},
        {"count": None},
        {"other": 1},
    ],
)
def test_nothing_else_is_guessed_at(data: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Box.model_validate(data)


def test_specs_are_frozen() -> None:
    with pytest.raises(ValidationError):
        Box().count = 2  # pyright: ignore[reportAttributeAccessIssue]


def test_a_line_holds_before_and_after_its_change() -> None:
    line = Linear(start=1.0, end=0.0, begin=100, frames=100)
    assert [line.at(frame) for frame in (0, 100, 150, 200, 10**9)] == [1.0, 1.0, 0.5, 0.0, 0.0]
    assert value_at(line, 175) == 0.25
    assert value_at(3, 175) == 3.0


@pytest.mark.parametrize("rate", [0.5, 1, {"start": 1, "end": 0.1, "frames": 10}, Linear(start=1, end=0.1, frames=10)])
def test_a_schedule_is_a_number_or_a_line(rate: object) -> None:
    assert Box.model_validate({"rate": rate}).rate in (0.5, 1.0, Linear(start=1, end=0.1, frames=10))


@pytest.mark.parametrize(
    ("rate", "faults"),
    [
        (0, [(("rate", "number"), "greater_than")]),
        (1.1, [(("rate", "number"), "less_than_equal")]),
        ("x", [(("rate", "number"), "float_type")]),
        (
            {"start": 2, "end": 0, "frames": 10},
            [(("rate", "schedule", "start"), "less_than_equal"), (("rate", "schedule", "end"), "greater_than")],
        ),
        ({"start": 1, "end": 1, "frames": 0}, [(("rate", "schedule", "linear", "frames"), "greater_than_equal")]),
    ],
)
def test_both_ends_of_a_schedule_lie_within_its_bounds(rate: object, faults: list[object]) -> None:
    with pytest.raises(ValidationError) as caught:
        Box.model_validate({"rate": rate})
    assert kinds_of_fault(caught.value) == faults


def test_one_of_a_registry_is_chosen_by_its_tag() -> None:
    assert Holder.model_validate({"shape": {"name": "square", "side": 2}}).shape == Square(side=2)
    assert Holder.model_validate({"shape": Square(side=2)}).shape == Square(side=2)


def test_the_first_of_a_registry_is_meant_without_a_tag() -> None:
    assert Holder.model_validate({"shape": {"radius": 2}}).shape == Round(radius=2)


@pytest.mark.parametrize("shape", [{"name": "oval"}, {"name": ["round"]}, "round", 3, None])
def test_nothing_outside_the_registry_fits(shape: object) -> None:
    with pytest.raises(ValidationError):
        Holder.model_validate({"shape": shape})
