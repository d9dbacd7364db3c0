from __future__ import annotations

from typing import Any

import pytest

from operant.spec.schedules import Linear, Schedule
from operant.spec.settings.algorithms import PpoSpec
from tests.unit.spec.dialects.slm.conftest import Changed, refusal

KEY = "agent.algorithm.entropy_coef_spec"


def line(start: float, end: float, begin: float = 0, finish: float = 0, name: str = "linear_decay") -> dict[str, Any]:
    return {KEY: {"name": name, "start_val": start, "end_val": end, "start_step": begin, "end_step": finish}}


@pytest.mark.parametrize(
    ("changes", "native"),
    [
        (line(0.1, 0.0, 0, 100), Linear(start=0.1, end=0.0, frames=100)),
        (line(0.1, 0.2, 50, 1e3), Linear(start=0.1, end=0.2, begin=50, frames=950)),
        (line(0.1, 0.1, 0, 100), 0.1),
        (line(0.1, 0.05, 0, 0), 0.05),
        (line(0.1, 0.05, name="no_decay"), 0.05),
        (line(0.1, 0.0, name="no_decay"), 0.1),
    ],
)
def test_schedules_do_what_they_say(ppo: Changed, changes: dict[str, Any], native: Schedule) -> None:
    algorithm = ppo(changes).spec.agent.algorithm
    assert isinstance(algorithm, PpoSpec)
    assert algorithm.entropy_coef == native


@pytest.mark.parametrize("changes", [line(0.1, 0.0, 0, 100), line(0.1, 0.2, 0, 100)])
def test_where_slm_lab_does_not_it_is_remarked_on(ppo: Changed, changes: dict[str, Any]) -> None:
    assert f"{KEY}.end_val" in [remark.key for remark in ppo(changes).remarks]
    assert f"{KEY}.start_val" in [remark.key for remark in ppo(line(0.1, 0.05, name="no_decay")).remarks]


@pytest.mark.parametrize("name", ["rate_decay", "periodic_decay"])
def test_curves_are_refused(ppo: Changed, name: str) -> None:
    assert f'{KEY}.name = "{name}" has no counterpart' in refusal(ppo, line(0.1, 0.01, 0, 100, name))
