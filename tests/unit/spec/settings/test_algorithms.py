from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, get_args

import pytest
from pydantic import Field

from operant.spec.fields import Closed
from operant.spec.paths import REGISTRIES, SECTIONS
from operant.spec.registry import OneOf
from operant.spec.schema import Spec
from operant.spec.settings.algorithms import ALGORITHMS, Algorithm
from operant.spec.settings.sections import AlgorithmSpec
from operant.spec.validation.conflict import Conflict


class DriftSpec(Algorithm):
    """Walks at random."""

    LEARNERS = {"torch": "drift:Drift"}  # noqa: RUF012 - a class constant, as its base declares
    RESUME = "warm"
    USES_MEMORY = False

    name: Literal["drift"] = Field(default="drift", description="Algorithm.")
    pace: float = Field(default=1.0, gt=0, description="Length of a step.")

    def conflicts(self, spec: Spec) -> Iterable[Conflict]:
        return ()

    def inert(self) -> Mapping[str, str]:
        return {}


def test_a_class_and_a_registry_entry_are_all_a_new_algorithm_needs() -> None:
    registry = {**ALGORITHMS, "drift": DriftSpec}

    class Agent(Closed):
        algorithm: Annotated[Algorithm, OneOf(registry)]

    agent = Agent.model_validate({"algorithm": {"name": "drift", "pace": 2}})
    assert agent.algorithm == DriftSpec(pace=2)
    assert agent.model_dump(mode="json") == {"algorithm": {"name": "drift", "pace": 2.0}}


def test_the_spec_and_the_help_read_the_registry() -> None:
    marker = next(each for each in get_args(AlgorithmSpec) if isinstance(each, OneOf))
    assert marker.registry is ALGORITHMS
    assert REGISTRIES["algorithm"] is ALGORITHMS
    assert {words[1] for words in SECTIONS if words[0] == "algorithm"} == set(ALGORITHMS)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_says_who_runs_it_and_how_it_resumes(name: str) -> None:
    algorithm = ALGORITHMS[name]
    assert algorithm.engine() in algorithm.LEARNERS
    assert algorithm.RESUME in ("exact", "warm")
    assert algorithm.model_validate({}).name == name


@pytest.mark.parametrize(
    ("algorithm", "text", "kind"),
    [({}, None, "exact"), ({"staleness": 1}, None, "warm"), ({"staleness": 0}, {"deadline": 2.0}, "warm")],
)
def test_what_depends_on_time_makes_a_resume_warm(algorithm: dict, text: dict | None, kind: str) -> None:
    spec = {"agent": {"algorithm": {"name": "grpo", **algorithm}}, "env": {"text": text}}
    assert ALGORITHMS["grpo"].resume_kind(spec) == kind
    assert ALGORITHMS["ppo"].resume_kind(spec) == "exact"
