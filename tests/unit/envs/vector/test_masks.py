"""Action masks on their way from an environment: both ways of offering one, and what is refused."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from operant.engines.torch import validate
from operant.engines.torch.learners import build_learner
from operant.engines.torch.video import greedy
from operant.envs.check import check_env
from operant.envs.vector.autoreset import AutoresetVectorEnv
from operant.envs.watch import play_one
from operant.errors import RunError, UsageError
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.sections import EnvSpec


class Corridor(gym.Env):
    """Three steps; at step k only action k is legal. `fault` is what a first environment may do wrong."""

    def __init__(self, by_method: bool = False, fault: str = "") -> None:
        self.observation_space = gym.spaces.Box(0, 3, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(3)
        self.fault = fault
        self.at = 0
        if by_method:
            self.action_masks = self._legal

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.at = 0
        return self._observe()

    def step(self, action: int):
        assert action == self.at
        self.at += 1
        obs, info = self._observe()
        return obs, 1.0, self.at == 3, False, info

    def _observe(self):
        info = {} if hasattr(self, "action_masks") else {"action_mask": self._legal()}
        return np.array([self.at], np.float32), info

    def _legal(self):
        if self.fault == "wide":
            return np.ones(4, np.int8)
        if self.fault == "stuck" and self.at == 1:
            return np.zeros(3, np.int8)
        return (np.arange(3) == self.at).astype(np.int8)


PATH = f"{__name__}.Corridor"


def vector(**kwargs: Any) -> AutoresetVectorEnv:
    return AutoresetVectorEnv(EnvSpec(name=PATH, kwargs=kwargs), 2, lambda i, k: 10 * i + k)


@pytest.mark.parametrize("by_method", [False, True])
def test_a_mask_is_read_from_info_or_from_the_method(by_method: bool):
    env = vector(by_method=by_method)
    for legal in (0, 1, 2, 0, 1):
        assert env.mask is not None
        assert env.begun.tolist() == [legal == 0] * 2
        assert env.mask.tolist() == [[k == legal for k in range(3)]] * 2
        step = env.step(env.mask.argmax(-1))
    assert step.next_mask is not None


def test_the_mask_of_the_successor_is_its_own_and_an_empty_one_at_the_end_is_no_fault():
    env = vector()
    steps = [env.step(np.full(2, k)) for k in range(3)]
    last = steps[-1]
    assert last.terminated.all()
    assert last.next_mask is not None
    assert last.next_mask.all(), "nobody acts at the end: nothing needs to be forbidden there"
    assert last.mask is not None
    assert last.mask.tolist() == [[True, False, False]] * 2


def test_a_mask_without_legal_actions_is_refused():
    env = vector(fault="stuck")
    with pytest.raises(RunError, match="no legal action") as refused:
        env.step(np.zeros(2, np.int64))
    assert "passes" in str(refused.value.remedy)


def test_a_mask_of_the_wrong_shape_is_refused_before_work_starts():
    with pytest.raises(UsageError, match=r"shape \(4,\), but it has 3 actions"):
        check_env(EnvSpec(name=PATH, kwargs={"fault": "wide"}))


def test_an_own_environment_is_tried_out_with_a_legal_action():
    check_env(EnvSpec(name=PATH))


def test_an_algorithm_that_takes_no_masks_says_so_before_work_starts():
    env = {"name": "operant/Masked-v0", "max_frame": 4000}
    validate(Spec.model_validate({"env": env, "agent": {"algorithm": {"name": "dqn"}}}))
    with pytest.raises(UsageError, match="says which actions are legal, and sac does not listen"):
        validate(Spec.model_validate({"env": env, "agent": {"algorithm": {"name": "sac"}}}))
    validate(Spec.model_validate({"env": {"max_frame": 4000}, "agent": {"algorithm": {"name": "sac"}}}))


def test_a_film_shows_legal_play():
    """`operant watch` plays one world without a AutoresetVectorEnv, and must ask for masks itself."""
    spec = Spec.model_validate({"env": {"name": PATH, "max_frame": 4096}})
    actor = build_learner(spec, Seeds(0), torch.device("cpu")).actor
    over = play_one(check_env(EnvSpec(name=PATH)), greedy(actor), 5, None)
    assert (len(over.decisions), over.score) == (3, 3.0)
