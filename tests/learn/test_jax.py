"""The probe problems in JAX, each of which fails for its own reason when a part of a fused learner is wrong."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from operant.engines.jax import nets
from operant.engines.jax.evaluation import Evaluator
from operant.engines.jax.learner import GREEDY, TrainState
from operant.engines.jax.learners import build_learner
from operant.engines.jax.program import Program, lane_of, stacked
from operant.engines.jax.sac import Sac
from operant.envs.probe import PROBES
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

GAMMA, LANES, ENVS = 0.9, 2, 4
PPO = {"name": "ppo", "gamma": GAMMA, "time_horizon": 32, "minibatch_size": 64, "entropy_coef": 0.0}
DQN = {
    "name": "dqn",
    "gamma": GAMMA,
    "training_start": 100,
    "target_update": 50,
    "epsilon": {"start": 1.0, "end": 0.1, "frames": 2000},
}
SAC = {
    "name": "sac",
    "gamma": GAMMA,
    "training_start": 100,
    "training_iter": 2,
    "polyak": 0.05,
    "temperature": 0.05,
    "entropy_scale": 0.5,
}
FAST = {"hidden": [32], "optimizer": {"lr": 3e-3}}
LEARNERS: dict[str, tuple[dict[str, Any], int]] = {
    "ppo": ({"algorithm": PPO, "net": FAST}, 12_000),
    "ppo-continuous": ({"algorithm": PPO, "net": {**FAST, "log_std_init": -0.5}}, 16_000),
    "dqn": ({"algorithm": DQN, "net": {**FAST, "duelling": True}}, 4_000),
    "sac": ({"algorithm": SAC, "net": FAST}, 4_000),
    "sac-continuous": ({"algorithm": SAC, "net": FAST}, 4_000),
}
# Compiling takes most of a probe's time: the hardest ones run with every change.
QUICK = {("ppo", "both"), ("sac-continuous", "both")}


def train(learner: str, probe: str) -> tuple[Program, TrainState, Any]:
    """Every lane trained on a probe, all in one chunk; and the traced numbers of all."""
    agent, frames = LEARNERS[learner]
    kwargs = {"continuous": True} if learner.endswith("continuous") else {}
    name = f"operant/Probe{probe.capitalize()}-v0"
    env = {"name": name, "num_envs": ENVS, "max_frame": frames, "kwargs": kwargs}
    spec = Spec.model_validate({"engine": "jax", "env": env, "agent": agent})
    program = Program(build_learner(spec), LANES)
    hyper = stacked([program.learner.hyper(spec)] * LANES)
    states = program.start([Seeds(seed) for seed in range(LANES)])
    states, _ = program.chunk(states, hyper, np.int32(frames // program.learner.frames))
    return program, states, hyper


def values(program: Program, state: TrainState, *observations: float) -> np.ndarray:
    """TrainState values of these observations: of the critic, or of the best action; SAC's without the entropy."""
    seen, net, params = jnp.array(observations)[:, None], program.learner.spec.agent.net, state.policy.params
    if isinstance(program.learner, Sac):
        noise = jnp.zeros((len(seen), program.learner.count))
        return np.asarray(program.learner.expected_q_and_logp(params["actor"], state.learner.critic, seen, noise)[0])
    if "advantage" in params:
        return np.asarray(nets.q_values(net, params, seen).max(-1))
    return np.asarray(nets.value(net, params, seen))


@pytest.mark.parametrize(
    ("learner", "probe"),
    [
        pytest.param(name, probe, marks=[] if (name, probe) in QUICK else [pytest.mark.slow])
        for name in LEARNERS
        for probe in PROBES
    ],
)
def test_probe(learner: str, probe: str):
    program, states, hyper = train(learner, probe)
    evaluator = Evaluator(program.learner, 20, program.options)
    for lane in range(LANES):
        state = lane_of(states, lane)
        if probe == "constant":
            np.testing.assert_allclose(values(program, state, 0.0), [1.0], atol=0.1)
        elif probe == "observation":
            np.testing.assert_allclose(values(program, state, -1.0, 1.0), [-1.0, 1.0], atol=0.1)
        elif probe == "discount":
            np.testing.assert_allclose(values(program, state, 0.0, 1.0), [GAMMA, 1.0], atol=0.1)
        else:
            best = 0.0 if learner.endswith("continuous") else 1.0
            scores = [over.score for over in evaluator(states.policy, hyper, 500, 20, GREEDY)[lane]]
            assert np.mean(scores) == pytest.approx(best, abs=0.06)


def test_lanes_of_different_settings_share_a_program_and_differ():
    """A lane with a learning rate of nearly nothing stays where it was, beside one that learns."""
    agent, _ = LEARNERS["ppo"]
    env = {"name": "operant/ProbeConstant-v0", "num_envs": ENVS, "max_frame": 4096}
    spec = Spec.model_validate({"engine": "jax", "env": env, "agent": agent})
    program = Program(build_learner(spec), 2)
    hyper = stacked([program.learner.hyper(spec)] * 2)
    rates = hyper.optimizer._replace(lr=jnp.array([3e-3, 1e-9]), critic_lr=jnp.array([3e-3, 1e-9]))
    before = program.start([Seeds(1), Seeds(1)])
    kept = jax.tree.map(np.asarray, before.policy)
    after, _ = program.chunk(before, hyper._replace(optimizer=rates), np.int32(20))
    moved = jax.tree.map(lambda new, old: np.abs(np.asarray(new) - old).max((*range(1, old.ndim),)), after.policy, kept)
    for leaf in jax.tree.leaves(moved):
        assert leaf[1] < 1e-5
    assert max(leaf[0] for leaf in jax.tree.leaves(moved)) > 1e-2
