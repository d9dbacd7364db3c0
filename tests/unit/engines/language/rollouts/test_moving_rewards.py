"""Rewards by a threshold that moves, against the rule as air-agent states it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from operant.engines.language.generation.generator import Completion, Prompt, Step
from operant.engines.language.rollouts.moving_rewards import MovingReward
from operant.engines.language.rollouts.types import Answer, Group
from operant.envs.text.task import Problem, Verdict
from operant.spec.settings.language import TextSpec

SCORES = [None, 0.0, 0.3, 0.5, 0.2, 0.5, 0.6, None, 0.1, 0.7, 0.65, 0.4, 0.8, 0.0, 0.75, 0.9, 0.2, 0.95, 0.3, 0.85]


def group(scores: list[float | None]) -> Group:
    step = Step((1,), Completion((1,), (), "x", "stop"))
    answers = (
        Answer((step,), Verdict(0.0, "wrong", {"nodes": 1.0, **({} if s is None else {"measured": s})}), 0.0)
        for s in scores
    )
    return Group(Problem("t/train/0", "t", "ask", None), Prompt((1,), 8), tuple(answers))


def wanted(scheme: str, every: int) -> list[float]:
    """The rule, one rollout after the other."""
    seen: list[float] = []
    step: list[float] = []
    threshold, found = 0.0, []
    for count, score in enumerate(SCORES, 1):
        if score is None:
            found.append(-0.5)
        elif score <= 0:
            found.append(0.0)
        else:
            passed = score >= threshold if scheme == "moving_best" else score > threshold
            found.append(1.0 if passed else 0.2)
        step += [] if score is None else [score]
        if count % every == 0:
            seen, step = [*seen, *step], []
            if scheme == "moving_best":
                threshold = max([0.0, *seen])
            elif len(seen) >= 8:
                threshold = float(np.percentile(seen[-64:], 70))
    return found


@pytest.mark.parametrize("scheme", ["moving_best", "percentile"])
@pytest.mark.parametrize("every", [1, 4, 10])
def test_the_threshold_moves_after_so_many_rollouts(scheme: str, every: int) -> None:
    text = TextSpec.model_validate({"dialogue": {"reward": scheme, "reward_every": every}})
    state: dict[str, Any] = {}
    rewards: list[float] = []
    for start in range(0, len(SCORES), 5):  # rounds need not end where thresholds move
        moving = MovingReward(text, round_size=5)
        rewards += moving.rewarded([group(SCORES[start : start + 5])], state)[0].rewards
    assert rewards == wanted(scheme, every)


def test_other_reward_functions_stay_in_the_sum() -> None:
    text = TextSpec.model_validate(
        {
            "dialogue": {"reward": "moving_best"},
            "verifier_weight": 0.5,
            "reward_functions": [{"name": "regex", "pattern": "x", "weight": 2.0}],
        }
    )
    answer = Answer((), Verdict(0.0, "wrong", {"nodes": 1.0, "measured": 0.4, "verifier": 0.0, "regex": 1.0}), 2.0)
    whole = Group(Problem("t/train/0", "t", "ask", None), Prompt((1,), 8), (answer,))
    assert MovingReward(text, 4).rewarded([whole], {})[0].rewards == [0.5 * 1.0 + 2.0 * 1.0]
