"""Small but real: every algorithm learns CartPole well beyond chance within a fixed budget and seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from operant.engines.torch.learners import build_learner
from operant.envs.vector.evaluation import play
from operant.run.seeding import Seeds
from operant.spec.load import load


@pytest.mark.parametrize(
    ("name", "frames", "floor"),
    [
        ("ppo_cartpole", 30_000, 450),
        pytest.param("dqn_cartpole", 10_000, 120, marks=pytest.mark.slow),
        ("a2c_cartpole", 40_000, 150),
        pytest.param("reinforce_cartpole", 40_000, 150, marks=pytest.mark.slow),
    ],
)
def test_learns_cartpole(name: str, frames: int, floor: float):
    torch.set_num_threads(1)
    spec = load(name).spec
    learner = build_learner(spec, Seeds(0), torch.device("cpu"))
    while learner.tracker.frames < frames:
        learner.iterate()
    scores = [over.score for over in play(spec.env, learner.actor.greedy, 20, spec.meta.eval_seed)]
    assert np.mean(scores) >= floor


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "floor"),
    [
        ("ppo_pendulum", -200),
        ("ppo_acrobot", -100),
        ("dqn_cartpole", 450),
        ("ddqn_per_cartpole", 450),
        ("a2c_cartpole", 497),
        ("reinforce_cartpole", 483),
        ("sac_pendulum", -200),
        ("td3_pendulum", -200),
        ("crossq_pendulum", -200),
        ("ppo_sil_cartpole", 450),
        ("a2c_acrobot", -90),
        ("dqn_lunar", 200),
        ("ddqn_per_lunar", 200),
        ("sac_lunar", 200),
    ],
)
def test_builtin_spec_reaches_its_known_score(name: str, floor: float):
    torch.set_num_threads(1)
    spec = load(name).spec
    learner = build_learner(spec, Seeds(1), torch.device("cpu"))
    while learner.tracker.frames < spec.env.max_frame:
        learner.iterate()
    scores = [over.score for over in play(spec.env, learner.actor.greedy, 50, spec.meta.eval_seed)]
    assert np.mean(scores) >= floor
