"""What a problem tells of an episode is kept with it, in evaluation and in training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from jax import Array

from operant.engines.jax.episodes import mean_parts
from operant.engines.jax.evaluation import Evaluator
from operant.engines.jax.learner import SAMPLED
from operant.engines.jax.learners import learner_class
from operant.engines.jax.program import Program, lane_of, stacked
from operant.envs.functional.classic import Body, CartPole
from operant.envs.functional.env import Outcome
from operant.run.seeding import Seeds
from operant.spec.schema import Spec


@dataclass(frozen=True)
class Counted(CartPole):
    """Tells after how many steps an episode ended, and whether the cart was to the right then."""

    facts = ("time", "right")

    def step(self, state: Body, action: Array, key: Array) -> tuple[Body, Outcome]:
        body, outcome = super().step(state, action, key)
        right = (outcome.observation[0] > 0).astype(float)
        return body, outcome._replace(facts={"time": body.time.astype(float), "right": right})


def program_of(algorithm: dict[str, object]) -> tuple[Program, Any]:
    """A program of one lane, and its traced numbers."""
    memory = {} if algorithm["name"] == "ppo" else {"memory": {"batch_size": 32, "max_size": 1000}}
    agent = {"algorithm": algorithm, "net": {"hidden": [8]}, **memory}
    env = {"name": "CartPole-v1", "num_envs": 4, "max_frame": 2000}
    spec = Spec.model_validate({"engine": "jax", "env": env, "agent": agent})
    learner = learner_class(spec.agent.algorithm.name)(spec, Counted())
    return Program(learner, 1), stacked([learner.hyper(spec)])


@pytest.mark.parametrize(
    "algorithm",
    [
        {"name": "ppo", "time_horizon": 64, "minibatch_size": 64},
        pytest.param({"name": "dqn", "training_frequency": 256, "training_start": 512}, marks=pytest.mark.slow),
    ],
    ids=["ppo", "dqn"],
)
def test_facts_stay_with_their_episode(algorithm: dict[str, object]):
    program, hyper = program_of(algorithm)
    states = program.start([Seeds(0)])
    played = list(
        Evaluator(program.learner, 8, program.options).single(
            lane_of(states.policy, 0), lane_of(hyper, 0), 5, 12, SAMPLED
        )
    )
    assert len({over.length for over in played}) > 3
    _, report = program.chunk(states, hyper, np.int32(1))
    trained = program.fetch(report, 1)[0][0].episodes
    assert len(trained) > 3
    for ended in (played, trained):
        assert [over.parts["time"] for over in ended] == [over.length for over in ended]
        assert {over.parts["right"] for over in ended} == {0.0, 1.0}
    means = mean_parts("eval", played)
    assert means["eval/time"] == np.mean([over.length for over in played])
