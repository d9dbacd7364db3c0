"""What cannot be seen must be remembered: recurrent networks solve what others cannot."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from operant.engines.torch.learners import build_learner
from operant.engines.torch.loop import Learner
from operant.envs.vector.evaluation import play
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

PPO = {"name": "ppo", "gamma": 0.95, "time_horizon": 32, "minibatch_size": 128}
A2C = {"name": "a2c", "gamma": 0.95, "training_frequency": 16}
FAST = {"hidden": [32], "optimizer": {"lr": 3e-3}}
LEARNERS: dict[str, dict[str, Any]] = {
    "ppo-gru": {"algorithm": PPO, "net": {**FAST, "type": "gru", "recurrent": 32}},
    "ppo-lstm-shared": {"algorithm": PPO, "net": {**FAST, "type": "lstm", "recurrent": 32, "shared": True}},
    "a2c-gru-shared": {"algorithm": A2C, "net": {**FAST, "type": "gru", "recurrent": 32, "shared": True}},
    "a2c-lstm": {"algorithm": A2C, "net": {**FAST, "type": "lstm", "recurrent": 32}},
    "ppo-mlp": {"algorithm": PPO, "net": FAST},
}
OFTEN = ("ppo-gru", "a2c-lstm", "ppo-mlp")


def train(spec: Spec, seed: int, frames: int) -> Learner:
    torch.set_num_threads(1)
    learner = build_learner(spec, Seeds(seed), torch.device("cpu"))
    while learner.tracker.frames < frames:
        learner.iterate()
    return learner


def greedy_score(learner: Learner, episodes: int) -> float:
    return float(np.mean([over.score for over in play(learner.spec.env, learner.actor.greedy, episodes, 900)]))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in OFTEN else pytest.mark.slow) for name in LEARNERS]
)
def test_only_a_memory_brings_the_cue_to_where_it_is_asked_for(name: str):
    env = {"name": "operant/Recall-v0", "num_envs": 8, "max_frame": 16_000}
    learner = train(Spec.model_validate({"env": env, "agent": LEARNERS[name]}), seed=1, frames=16_000)
    score = greedy_score(learner, 100)
    assert abs(score) < 0.3 if name.endswith("mlp") else score == 1.0


class Flash(gym.Env):
    """`operant/Recall-v0` in pictures: a black or a white one says which action is right four steps later."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(0, 255, (8, 8, 1), np.uint8)
        self.action_space = gym.spaces.Discrete(2)
        self.cue = self.at = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.cue, self.at = int(self.np_random.integers(2)), 0
        return np.full((8, 8, 1), 255 * self.cue, np.uint8), {}

    def step(self, action: int):
        self.at += 1
        over = self.at == 4
        reward = (1.0 if action == self.cue else -1.0) if over else 0.0
        return np.full((8, 8, 1), 100, np.uint8), reward, over, False, {}


def test_remembers_pictures():
    net = {"type": "nature_cnn", "conv": [[8, 3, 2]], "hidden": [16], "recurrent": 16, "optimizer": {"lr": 1e-3}}
    env = {"name": f"{__name__}.Flash", "num_envs": 4, "max_frame": 6000}
    agent = {"algorithm": {**PPO, "minibatch_size": 64}, "net": net}
    learner = train(Spec.model_validate({"env": env, "agent": agent}), seed=0, frames=6000)
    assert greedy_score(learner, 40) == 1.0
