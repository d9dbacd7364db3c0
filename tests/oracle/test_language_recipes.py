"""Every algorithm, from rewards to the gradient of its first step, against the estimator that it is named after.

Each oracle says from the paper what every token's log-probability is weighed with; some groups have equal rewards,
and lengths differ. At a first step all ratios are 1, so the gradient of every loss is that of weights.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("transformers")

from operant.engines.language.learning.samples import training_samples
from operant.spec.settings.language_algorithms import VERIFIED
from tests.oracle.language_rounds import assert_same, context_of, gradients, played, spec_of, weighted

REWARDS = [[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]
MIXED = [[0.25, 1.0, 0.5, 0.25], [0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0]]

Weights = list[list[float]]
Oracle = Callable[[np.ndarray, np.ndarray], Weights]


def spread(each: np.ndarray, lengths: np.ndarray) -> Weights:
    """The same weight for all tokens of an answer."""
    return [[float(weight)] * int(length) for weight, length in zip(each.ravel(), lengths.ravel(), strict=True)]


def relative(rewards: np.ndarray) -> np.ndarray:
    """(r - mean) / deviation within each group, 0 where nothing deviates."""
    advantages = np.zeros_like(rewards)
    for group in range(len(rewards)):
        deviation = np.sqrt(np.mean((rewards[group] - rewards[group].mean()) ** 2))
        if deviation > 0:
            advantages[group] = (rewards[group] - rewards[group].mean()) / deviation
    return advantages


def grpo(rewards: np.ndarray, lengths: np.ndarray) -> Weights:
    """1/G sum 1/|o| sum A, on average over all prompts of the batch: Shao et al. 2024, equation 3."""
    return spread(relative(rewards) / lengths / rewards.size, lengths)


def dr_grpo(rewards: np.ndarray, lengths: np.ndarray) -> Weights:
    """Neither |o| nor the deviation, but a constant: Liu et al. 2025."""
    return spread((rewards - rewards.mean(1, keepdims=True)) / 256 / rewards.size, lengths)


def dapo(rewards: np.ndarray, lengths: np.ndarray) -> Weights:
    """Groups that are all right or all wrong are not in the batch, and every token of the batch counts the same."""
    taught = rewards.std(1) > 0
    tokens = lengths[taught].sum()
    return spread(relative(rewards) * taught[:, None] / tokens, lengths)


def gspo(rewards: np.ndarray, lengths: np.ndarray) -> Weights:
    """The gradient of 1/G sum s A, where s is the ratio of the text to the power 1/|o|: Zheng et al. 2025."""
    return spread(relative(rewards) / lengths / rewards.size, lengths)


def cispo(rewards: np.ndarray, lengths: np.ndarray) -> Weights:
    """sum A log pi over the tokens of all answers, divided by how many these are: MiniMax 2025."""
    return spread(relative(rewards) / lengths.sum(), lengths)


def rloo(rewards: np.ndarray, lengths: np.ndarray) -> Weights:
    """1/k sum (r - mean of the others) grad log pi(y), of the whole text: Ahmadian et al. 2024."""
    size = rewards.shape[1]
    others = (rewards.sum(1, keepdims=True) - rewards) / (size - 1)
    return spread((rewards - others) / rewards.size, lengths)


def reinforce_pp(rewards: np.ndarray, lengths: np.ndarray) -> Weights:
    """Each token's advantage is the reward, standardised by all tokens of the batch: Hu et al. 2025."""
    by_token = np.repeat(rewards.ravel(), lengths.ravel())
    return spread((rewards - by_token.mean()) / by_token.std() / len(by_token), lengths)


ORACLES: dict[str, Oracle] = {
    "grpo": grpo,
    "dr_grpo": dr_grpo,
    "dapo": dapo,
    "gspo": gspo,
    "cispo": cispo,
    "rloo": rloo,
    "reinforce_pp": reinforce_pp,
}


def test_every_algorithm_has_an_oracle() -> None:
    apart = {"gkd"}  # learns from a teacher and not from rewards: test_language_distillation.py
    assert ORACLES.keys() | apart == VERIFIED.keys()


@pytest.mark.parametrize("rewards", [REWARDS, MIXED], ids=["uniform groups", "parts of a reward"])
@pytest.mark.parametrize("name", ORACLES)
def test_the_first_gradient_is_the_papers(name: str, rewards: list[list[float]]) -> None:
    with context_of(spec_of(rewards, name=name)) as context:
        groups = played(context, rewards)
        lengths = np.array([[answer.length for answer in group.answers] for group in groups])
        wanted = weighted(context, groups, ORACLES[name](np.array(rewards), lengths))
        (found,) = gradients(context, groups)
        assert_same(found, wanted)


def test_reinforce_pp_learns_from_groups_of_equal_rewards() -> None:
    with context_of(spec_of(REWARDS, name="reinforce_pp")) as context:
        learnt = [sample.advantage for (sample,) in training_samples(played(context, REWARDS), context.settings)]
    assert len(learnt) == 12
    assert all(advantage > 0 for advantage in learnt[:4])
    assert all(advantage < 0 for advantage in learnt[4:8])


@pytest.mark.parametrize("name", ["grpo", "gspo", "cispo", "dr_grpo", "rloo"])
def test_answers_without_a_gradient_are_not_computed_and_change_nothing(name: str) -> None:
    with context_of(spec_of(REWARDS, name=name)) as context:
        groups = played(context, REWARDS)
        (spared,) = gradients(context, groups)
        context.learner.computes_all = True
        (whole,) = gradients(context, groups)
    assert_same(spared, whole)
