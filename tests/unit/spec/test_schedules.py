"""Own schedules: found by name, held to the bounds of the setting over the budget, and refused in one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from operant.errors import SpecError
from operant.spec.load import load_mapping
from operant.spec.schedules import value_at

FILE = """
import math
from operant.spec.fields import free
from operant.spec.schedules import ScheduleSpec

class Wave(ScheduleSpec):
    '''Up and down.'''
    top: float = free(default=1.0, description="Highest value.")

    def at(self, frame):
        return self.top * abs(math.cos(frame / 100))

class Late(ScheduleSpec):
    '''Fails after a while.'''
    def at(self, frame):
        return 1 / max(0, 500 - frame)

class Nan(ScheduleSpec):
    '''No number.'''
    def at(self, frame):
        return float("nan")

class Nothing(ScheduleSpec):
    '''Has no values.'''
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "wavy_schedules.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("wavy_schedules", None)


def dqn(epsilon: object, *overrides: str):
    algorithm = {"name": "dqn", "training_start": 100} | ({} if epsilon is None else {"epsilon": epsilon})
    data = {"env": {"max_frame": 1000}, "agent": {"algorithm": algorithm}}
    return load_mapping(data, None, overrides).spec.agent.algorithm


def test_an_own_schedule_is_a_value_at_every_frame():
    epsilon = dqn({"name": "wavy_schedules:Wave", "top": 0.5}).epsilon  # pyright: ignore[reportAttributeAccessIssue]
    assert value_at(epsilon, 0) == 0.5
    assert value_at(epsilon, 157) < 0.01


def test_it_can_be_named_in_the_place_of_a_default_line():
    algorithm = dqn(None, "agent.algorithm.epsilon.name=wavy_schedules:Wave")
    assert value_at(algorithm.epsilon, 0) == 1.0  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("epsilon", "told"),
    [
        ({"name": "wavy_schedules:Wave", "top": 1.5}, "agent.algorithm.epsilon is 1.5 at frame 0"),
        ({"name": "wavy_schedules:Late"}, "agent.algorithm.epsilon cannot be computed at frame 500: ZeroDivisionError"),
        ({"name": "wavy_schedules:Nan"}, "agent.algorithm.epsilon is nan at frame 0"),
        ({"name": "wavy_schedules:Nothing"}, "agent.algorithm.epsilon.name: wavy_schedules:Nothing lacks at"),
        ({"name": "wavy_schedules:Wav"}, "agent.algorithm.epsilon.name: wavy_schedules has no Wav"),
        ({"name": "wavy_schedules:Wave", "tpo": 1}, "agent.algorithm.epsilon.tpo is not a setting of wavy_schedules"),
        ({"name": "cosine"}, 'agent.algorithm.epsilon.name = "cosine" is not one of linear'),
    ],
)
def test_what_is_wrong_is_told_before_any_work(epsilon: object, told: str):
    with pytest.raises(SpecError) as caught:
        dqn(epsilon)
    assert told in str(caught.value)


def test_the_jax_engine_refuses_what_it_cannot_trace():
    pytest.importorskip("jax")
    from operant.engines.jax.compatibility import untraceable
    from operant.spec.schema import Spec

    spec = Spec.model_validate(
        {"engine": "jax", "agent": {"algorithm": {"name": "dqn", "epsilon": {"name": "wavy_schedules:Wave"}}}}
    )
    (refusal,) = untraceable(spec)
    assert "agent.algorithm.epsilon: wavy_schedules:Wave cannot be traced by the jax engine" in str(refusal)
