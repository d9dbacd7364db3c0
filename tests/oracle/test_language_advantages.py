"""Advantages of groups against loops in float64."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from operant.engines.language.learning.advantages import METHODS, compute_advantages

REWARDS = np.array([1.0, 0.0, 0.25, 1.0, 0.0, 0.0, 0.5, 0.5, 0.5, 1.0])
GROUPS = np.array([7, 7, 7, 3, 3, 3, 5, 5, 5, 9])


def members(i: int) -> list[float]:
    return [float(r) for r, g in zip(REWARDS, GROUPS, strict=True) if g == GROUPS[i]]


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def spread(values: list[float]) -> float:
    return math.sqrt(mean([(v - mean(values)) ** 2 for v in values]))


def others(i: int) -> float:
    same = members(i)
    return (math.fsum(same) - REWARDS[i]) / (len(same) - 1) if len(same) > 1 else float(REWARDS[i])


WHOLE = [float(r) for r in REWARDS]
LEFT = [float(REWARDS[i]) - mean(members(i)) for i in range(len(REWARDS))]
ORACLES: dict[str, Callable[[int], float]] = {
    "grpo": lambda i: (REWARDS[i] - mean(members(i))) / max(spread(members(i)), 1e-6),
    "dr_grpo": lambda i: REWARDS[i] - mean(members(i)),
    "rloo": lambda i: REWARDS[i] - others(i),
    "reinforce_pp": lambda i: (REWARDS[i] - mean(WHOLE)) / spread(WHOLE),
    "reinforce_pp_baseline": lambda i: (REWARDS[i] - mean(members(i)) - mean(LEFT)) / spread(LEFT),
    "max_rl": lambda i: REWARDS[i] / mean(members(i)) - 1 if mean(members(i)) else 0.0,
}


@pytest.mark.parametrize("name", METHODS)
def test_advantages(name: str) -> None:
    found = compute_advantages(name, REWARDS, GROUPS)
    np.testing.assert_allclose(found, [ORACLES[name](i) for i in range(10)], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["reinforce_pp", "reinforce_pp_baseline"])
def test_reinforce_pp_has_mean_0_and_deviation_1_over_the_tokens_of_the_batch(name: str) -> None:
    tokens = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3])
    each = np.repeat(compute_advantages(name, REWARDS, GROUPS, tokens=tokens), tokens)
    assert each.mean() == pytest.approx(0, abs=1e-12)
    assert each.std() == pytest.approx(1)


@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"reinforce_pp", "reinforce_pp_baseline"}))
def test_equal_rewards_are_worth_exactly_nothing(name: str) -> None:
    rewards = np.array([0.1, 0.1, 0.1, 0.7, 0.2, 0.2])
    assert compute_advantages(name, rewards, np.array([0, 0, 0, 1, 1, 1]))[:3].tolist() == [0.0, 0.0, 0.0]


def test_scales_are_those_of_the_group_the_batch_or_one() -> None:
    plain = compute_advantages("grpo", REWARDS, GROUPS, "none")
    np.testing.assert_allclose(compute_advantages("grpo", REWARDS, GROUPS, "batch"), plain / spread(WHOLE))
    wide = compute_advantages("grpo", REWARDS, GROUPS, "group")[:6] / plain[:6]
    np.testing.assert_allclose(wide, [1 / spread(members(i)) for i in range(6)])


def test_a_group_without_any_success_gives_max_rl_nothing() -> None:
    found = compute_advantages("max_rl", np.zeros(4), np.zeros(4, dtype=int))
    assert found.tolist() == [0.0] * 4


def test_a_missing_reward_is_refused() -> None:
    with pytest.raises(ValueError, match="leave it out"):
        compute_advantages("grpo", np.array([1.0, np.nan]), np.array([0, 0]))
