"""An environment of the wrong kind is refused in words, with a way out."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from operant.engines.torch.compatibility import Facts, refusals
from operant.spec.schema import Spec

FEW, MANY = gym.spaces.Discrete(3), gym.spaces.MultiBinary(4)
BOUNDED = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
UNBOUNDED = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
CNN = {"type": "nature_cnn"}


def told(algorithm: str, actions: gym.Space, net: dict[str, Any] | None = None, **facts: Any) -> list[str]:
    agent = {"algorithm": {"name": algorithm}, "net": net or {}}
    spec = Spec.model_validate({"name": "x", "env": {"name": "Some-v0"}, "agent": agent})
    known = {"is_limited": True, "is_masked": False, **facts}
    return [str(refusal) for refusal in refusals(spec, Facts("Some-v0", actions, **known))]


@pytest.mark.parametrize(
    ("algorithm", "actions", "net"),
    [
        ("ppo", FEW, None),
        ("ppo", UNBOUNDED, None),
        ("ppo", BOUNDED, CNN),
        ("sac", FEW, CNN),
        ("crossq", BOUNDED, None),
        ("td3", BOUNDED, None),
        ("dqn", FEW, CNN),
    ],
)
def test_what_suits_is_not_refused(algorithm: str, actions: gym.Space, net: dict[str, Any] | None):
    assert told(algorithm, actions, net) == []


@pytest.mark.parametrize(
    ("algorithm", "actions", "net", "facts", "words"),
    [
        ("ppo", MANY, None, {}, "which no algorithm here supports"),
        ("dqn", BOUNDED, None, {}, "dqn chooses among discrete actions"),
        ("sarsa", BOUNDED, None, {}, "sarsa chooses among discrete actions"),
        ("td3", FEW, None, {}, "td3 chooses real actions"),
        ("sac", UNBOUNDED, None, {}, "sac needs bounds to act within"),
        ("crossq", FEW, CNN, {}, "crossq renormalizes perceptrons"),
        ("sac", BOUNDED, CNN, {}, "sac reads images only where actions are discrete"),
        ("reinforce", FEW, None, {"is_limited": False}, "may never end"),
        ("sac", FEW, None, {"is_masked": True}, "sac does not listen"),
    ],
)
def test_what_does_not_suit_is_refused_with_a_way_out(
    algorithm: str, actions: gym.Space, net: dict[str, Any] | None, facts: dict[str, Any], words: str
):
    first = told(algorithm, actions, net, **facts)[0]
    assert words in first
    assert "Some-v0" in first or net
    assert "-s " in first or actions is MANY


def test_a_mask_that_is_listened_to_is_welcome():
    assert told("ppo", FEW, is_masked=True) == []
