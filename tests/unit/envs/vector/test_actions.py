"""Whether an action means the same in two spaces. How actions are scaled is tried in `test_gym`."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from operant.envs.vector.actions import ActionMap

TURN = Box(-2, 2, (1,), np.float32)
UNEVEN = Box(np.array([-1, 0], np.float32), np.array([1, 4], np.float32))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Discrete(2), Discrete(2), True),
        (Discrete(3), Discrete(3, start=-1), True),
        (Discrete(2), Discrete(3), False),
        (Discrete(2), Box(-1, 1, (2,)), False),
        (TURN, Box(-2, 2, (1,), np.float64), True),
        (TURN, Box(-1, 1, (1,)), False),
        (TURN, Box(-2, 3, (1,)), False),
        (TURN, Box(-2, 2, (1, 1)), False),
        (TURN, Box(-np.inf, np.inf, (1,)), False),
        (Box(-np.inf, np.inf, (1,)), Box(-np.inf, np.inf, (1,)), True),
        (UNEVEN, UNEVEN, True),
        (UNEVEN, Box(-1, 4, (2,)), False),
    ],
)
def test_actions_match_by_kind_number_shape_and_bounds(one: gym.Space, other: gym.Space, same: bool):
    assert ActionMap(one).matches(ActionMap(other)) is same
    assert ActionMap(other).matches(ActionMap(one)) is same


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (Discrete(4), "4 discrete ones"),
        (TURN, "real ones of shape (1,) between -2 and 2"),
        (UNEVEN, "real ones of shape (2,) between [-1, 0] and [1, 4]"),
        (Box(-np.inf, np.inf, (3,)), "real ones of shape (3,) between -inf and inf"),
    ],
)
def test_actions_in_words(space: gym.Space, words: str):
    assert ActionMap(space).describe() == words
