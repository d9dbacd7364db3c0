"""The toy is sound by its own agents, and a rollout is judged in the verifiers' pool like any other answer."""

from __future__ import annotations

from operant.envs.research.workbench import ResearchTask
from operant.envs.text.pool import Verifiers
from operant.envs.text.tasks import make_task
from operant.envs.text.validate_agents import validate_with_agents
from tests.unit.envs.research.conftest import GUESS, RIGHT


def test_the_expert_reaches_the_ceiling_and_no_cheater_does() -> None:
    found = validate_with_agents(ResearchTask(GUESS), rollouts=1)
    assert found.sound, [part for part in found.parts if part.problem]


def test_a_rollout_of_one_turn_is_judged_in_the_pool() -> None:
    task = make_task(GUESS, {})
    problem = task.problems("eval")[0]
    with Verifiers([task], workers=1) as verifiers:
        right, wrong = verifiers.verify_all([(problem, RIGHT), (problem, "hello")])
    assert (right.score, wrong.score) == (1.0, 0.0)
    assert wrong.parts["faults"] == 1.0
