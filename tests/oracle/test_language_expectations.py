"""The gradient of each loss and divergence, in expectation, is the gradient of what it says that it estimates.

No sampling: all texts of a small world are listed, each with its probability, and what is estimated is written down
as a function of the policy and differentiated by autograd.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import comb, sqrt
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from operant.engines.language.learning.advantages import METHODS, compute_advantages
from operant.engines.language.learning.losses import (
    Divergence,
    LossSettings,
    Normalizer,
    Surrogate,
    Tokens,
    divergence,
    drift,
)
from tests.oracle.language_worlds import Policies, World, expected_gradient, world

HERE = world(longest=3)
POLICY, OTHER, FIXED = HERE.policy(1), HERE.policy(2), HERE.policy(3)
NEAR = POLICY + 0.3 * OTHER
WORTH = torch.tensor(np.random.default_rng(4).normal(size=len(HERE.texts)))
LENGTHS = torch.tensor([float(len(text.tokens)) for text in HERE.texts], dtype=torch.float64)
NOTHING = torch.zeros(len(HERE.texts), dtype=torch.float64)
ON_POLICY = Policies(POLICY, POLICY, POLICY, FIXED)


def gradient(of: Callable[[Tensor], Tensor], at: Tensor) -> Tensor:
    """The gradient of a function of a policy."""
    logits = at.detach().clone().requires_grad_()
    (slope,) = torch.autograd.grad(of(logits), logits)
    return slope


def expected(here: World, worth: Tensor) -> Callable[[Tensor], Tensor]:
    """What texts are worth on average, as a function of the policy."""
    return lambda logits: sum(
        (here.chance(logits, text) * worth[number] for number, text in enumerate(here.texts)), torch.zeros(())
    )


def same(found: Tensor, wanted: Tensor) -> None:
    assert wanted.abs().max() > 1e-3, "a gradient of zero would prove nothing"
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)


SURROGATES: dict[str, LossSettings] = {
    "clip": LossSettings(),
    "cispo": LossSettings(surrogate="cispo", clip_high=4.0),
    "reinforce": LossSettings(surrogate="reinforce"),
}


def test_every_surrogate_and_divergence_is_among_these() -> None:
    assert set(SURROGATES) == set(get_args(Surrogate))
    assert set(DIVERGENCES) == set(get_args(Divergence))


@pytest.mark.parametrize("name", SURROGATES)
def test_a_sum_over_tokens_has_the_policy_gradient(name: str) -> None:
    found = expected_gradient(HERE, ON_POLICY, WORTH, replace(SURROGATES[name], mean="sum"))
    same(found, -gradient(expected(HERE, WORTH), POLICY))


@pytest.mark.parametrize("name", SURROGATES)
def test_a_constant_length_and_a_count_of_tokens_only_divide_it(name: str) -> None:
    wanted = -gradient(expected(HERE, WORTH), POLICY)
    constant = replace(SURROGATES[name], mean="constant", length=7)
    same(expected_gradient(HERE, ON_POLICY, WORTH, constant), wanted / 7)
    by_tokens = replace(SURROGATES[name], mean="token")
    same(expected_gradient(HERE, ON_POLICY, WORTH, by_tokens, Normalizer(tokens=5, sequences=1)), wanted / 5)


@pytest.mark.parametrize("settings", [*SURROGATES.values(), LossSettings(level="sequence")])
def test_a_mean_over_each_texts_tokens_makes_long_texts_worth_less(settings: LossSettings) -> None:
    """GRPO's, and with ratios of whole texts GSPO's: not the gradient of what texts are worth, but by length."""
    found = expected_gradient(HERE, ON_POLICY, WORTH, replace(settings, mean="sequence"))
    same(found, -gradient(expected(HERE, WORTH / LENGTHS), POLICY))


def at_visited(apart: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A function of the policy's and the fixed one's distributions, over the states that the policy now meets."""
    visits, fixed = HERE.visits(POLICY), torch.log_softmax(FIXED, -1)
    return lambda logits: (visits * apart(torch.log_softmax(logits, -1), fixed)).sum()


def reverse(ours: Tensor, theirs: Tensor) -> Tensor:
    """KL(policy || fixed) in every state."""
    return (ours.exp() * (ours - theirs)).sum(-1)


def forward(ours: Tensor, theirs: Tensor) -> Tensor:
    """KL(fixed || policy) in every state."""
    return (theirs.exp() * (theirs - ours)).sum(-1)


DIVERGENCES = {"k1": None, "k2": reverse, "k3": forward}


@pytest.mark.parametrize(
    ("name", "role"), [*((name, "kl") for name in DIVERGENCES), ("k2", "teacher"), ("k3", "teacher")]
)
def test_a_divergence_in_the_loss(name: str, role: str) -> None:
    """k2 is KL(policy || fixed) and k3 is KL(fixed || policy), each in the states as they are met; k1 is nothing."""
    named: Any = {"kl": {"kl": name, "kl_coef": 0.7}, "teacher": {"teacher_kl": name, "teacher_coef": 0.7}}[role]
    settings = LossSettings(mean="sum", **named)
    found = expected_gradient(HERE, ON_POLICY, NOTHING, settings)
    apart = DIVERGENCES[name]
    if apart is None:
        torch.testing.assert_close(found, torch.zeros_like(found), rtol=0, atol=1e-12)
    else:
        same(found, 0.7 * gradient(at_visited(apart), POLICY))


def test_the_values_of_k1_and_k3_are_right_where_their_gradients_are_not() -> None:
    rows, fixed = torch.log_softmax(POLICY, -1), torch.log_softmax(FIXED, -1)
    exact = (HERE.visits(POLICY) * reverse(rows, fixed)).sum()
    for name in ("k1", "k3"):
        found = sum(
            HERE.chance(POLICY, text) * divergence(HERE.logprobs(POLICY, text), HERE.logprobs(FIXED, text), name).sum()  # pyright: ignore[reportArgumentType]
            for text in HERE.texts
        )
        torch.testing.assert_close(found, exact)


def test_the_entropy_bonus_is_that_of_the_states_that_are_met() -> None:
    found = expected_gradient(HERE, ON_POLICY, NOTHING, LossSettings(mean="sum", entropy_coef=0.3))
    same(found, 0.3 * gradient(at_visited(lambda ours, _: (ours.exp() * ours).sum(-1)), POLICY))


def test_the_squared_drift_is_that_over_the_generators_texts() -> None:
    who = Policies(POLICY, POLICY, NEAR)
    found = expected_gradient(HERE, who, NOTHING, LossSettings(mean="sum", drift_coef=0.4))

    def drift(logits: Tensor) -> Tensor:
        parts = [
            HERE.chance(NEAR, text) * (HERE.logprobs(logits, text) - HERE.logprobs(NEAR, text)).square().sum()
            for text in HERE.texts
        ]
        return torch.stack(parts).sum()

    same(found, 0.4 * gradient(drift, POLICY))


def test_the_kl_to_the_generator_has_the_gradient_of_their_divergence() -> None:
    """One token: KL(pi || mu) over the whole vocabulary, from tokens that mu wrote."""
    logits, generator = torch.tensor([0.3, -0.8, 1.1], dtype=torch.float64), torch.tensor([0.0, 0.4, -0.2]).double()

    def found(point: Tensor) -> Tensor:
        ours, theirs = torch.log_softmax(point, -1), torch.log_softmax(generator, -1)
        tokens = Tokens(ours, ours.detach(), theirs, torch.zeros(3).double(), torch.arange(3))
        return (theirs.exp() * drift(tokens, "kl", torch.ones(3).double())).sum()

    def exact(point: Tensor) -> Tensor:
        ours, theirs = torch.log_softmax(point, -1), torch.log_softmax(generator, -1)
        return (ours.exp() * (ours - theirs)).sum()

    same(gradient(found, logits), gradient(exact, logits))


def test_weights_of_whole_texts_undo_that_others_wrote_them() -> None:
    settings = LossSettings(surrogate="reinforce", mean="sum", correction="sequence", correction_cap=1e9)
    found = expected_gradient(HERE, Policies(POLICY, POLICY, NEAR), WORTH, settings)
    same(found, -gradient(expected(HERE, WORTH), POLICY))


def test_a_limit_of_weights_changes_nothing_for_texts_below_it() -> None:
    who, cap = Policies(POLICY, POLICY, NEAR), 1.05
    weights = torch.stack([HERE.chance(POLICY, text) / HERE.chance(NEAR, text) for text in HERE.texts])
    assert (weights > cap).any()
    assert (weights < cap).any()
    below = torch.where(weights < cap, WORTH, 0.0)
    settings = LossSettings(surrogate="reinforce", mean="sum", correction="sequence", correction_cap=cap)
    same(expected_gradient(HERE, who, below, settings), -gradient(expected(HERE, below), POLICY))


def one_step_by_the_trained(logits: Tensor) -> Tensor:
    """What texts are worth whose every token but one is the generator's, summed over which one: the objective of PPO
    and of every weight of single tokens (Kakade and Langford 2002)."""
    total = torch.zeros((), dtype=torch.float64)
    for number, text in enumerate(HERE.texts):
        theirs = HERE.logprobs(NEAR, text)
        total = total + WORTH[number] * (theirs.sum().exp() * (HERE.logprobs(logits, text) - theirs).exp().sum())
    return total


@pytest.mark.parametrize(
    "settings",
    [
        LossSettings(surrogate="reinforce"),
        LossSettings(surrogate="cispo", clip_high=1e9),
        LossSettings(clip_low=1.0, clip_high=1e9),
        LossSettings(surrogate="reinforce", mask="icepop", mask_low=0.0, mask_high=1e9),
        LossSettings(surrogate="reinforce", mask="dppo", mask_difference=1.0),
    ],
)
def test_ratios_to_the_generator_weigh_each_token_by_itself(settings: LossSettings) -> None:
    found = expected_gradient(HERE, Policies(POLICY, NEAR, NEAR), WORTH, replace(settings, mean="sum"))
    same(found, -gradient(one_step_by_the_trained, POLICY))


@pytest.mark.parametrize(
    "settings", [LossSettings(), LossSettings(surrogate="reinforce"), LossSettings(surrogate="cispo")]
)
def test_truncated_weights_of_tokens_do_so_too_below_their_limit(settings: LossSettings) -> None:
    settings = replace(settings, mean="sum", correction="token", correction_cap=1e9)
    found = expected_gradient(HERE, Policies(POLICY, POLICY, NEAR), WORTH, settings)
    same(found, -gradient(one_step_by_the_trained, POLICY))


def test_without_weights_it_is_the_gradient_of_neither() -> None:
    """Ratios to the trainer's own probabilities are 1 whoever wrote: no spec may have that where others did."""
    found = expected_gradient(HERE, Policies(POLICY, POLICY, NEAR), WORTH, LossSettings(mean="sum"))
    for wanted in (gradient(expected(HERE, WORTH), POLICY), gradient(one_step_by_the_trained, POLICY)):
        assert (found + wanted).norm() > 0.1 * wanted.norm()


def expected_credit(name: str, size: int, chance: float) -> float:
    """The mean of sum(A d log P) / size over all groups of `size` answers that succeed by chance.

    An answer is right by `chance` p: d log P / dp is 1/p of a right one and -1/(1 - p) of a wrong one.
    """
    slope = 0.0
    for rewards in product((0.0, 1.0), repeat=size):
        likely = np.prod([chance if reward else 1 - chance for reward in rewards])
        advantages = compute_advantages(name, np.array(rewards), np.zeros(size, dtype=int))
        scores = np.array([1 / chance if reward else -1 / (1 - chance) for reward in rewards])
        slope += float(likely * (advantages * scores).mean())
    return slope


N, P = 5, 0.3
BY_DEVIATION = sum(comb(N, k) * P**k * (1 - P) ** (N - k) * sqrt(k * (N - k)) / N for k in range(N + 1)) / (P * (1 - P))
CREDITS: dict[str, float] = {
    "rloo": 1.0,  # the gradient of p itself
    "dr_grpo": (N - 1) / N,  # of p, but for the share that an answer has in its own baseline
    "grpo": BY_DEVIATION,  # hard and easy problems count more: tends to 1 / sqrt(p (1 - p)), that of 2 asin(sqrt(p))
    "reinforce_pp": BY_DEVIATION,  # the same where the batch has one problem
    "reinforce_pp_baseline": BY_DEVIATION,
    "max_rl": sum((1 - P) ** k for k in range(N - 1)),  # of the first n - 1 terms of log p
}


@pytest.mark.parametrize("name", METHODS)
def test_what_a_credit_climbs(name: str) -> None:
    assert expected_credit(name, N, P) == pytest.approx(CREDITS[name], rel=1e-9)


def test_many_samples_agree_with_the_listing() -> None:
    """Monte Carlo, with a policy of one token: the issue's numbers of k1 and k2 in small."""
    here = world(longest=1)
    policy, fixed = here.policy(5), here.policy(6)
    logits = policy.clone().requires_grad_()
    rows, theirs = torch.log_softmax(logits[0], -1), torch.log_softmax(fixed[0], -1)
    drawn = torch.multinomial(
        rows.detach().exp(), 200_000, replacement=True, generator=torch.Generator().manual_seed(7)
    )
    exact = gradient(lambda at: reverse(torch.log_softmax(at[0], -1), theirs), policy)
    for name, wanted in (("k1", torch.zeros_like(exact)), ("k2", exact)):
        loss = divergence(rows[drawn], theirs[drawn], name).mean()  # pyright: ignore[reportArgumentType]
        (found,) = torch.autograd.grad(loss, logits, retain_graph=True)
        torch.testing.assert_close(found, wanted, rtol=0, atol=0.02)
    assert exact.abs().max() > 0.1
