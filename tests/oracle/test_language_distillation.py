"""Divergences over a teacher's likeliest tokens, and what the head gives for them, against float64 numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from operant.engines.language.learning.losses import LossSettings, Normalizer, Tokens, policy_loss, top_divergence
from operant.engines.language.policy.batching import Sample, micro_batches
from operant.engines.language.policy.logprobs import token_logprobs
from tests.unit.engines.language.small_models import random_policy

RNG = np.random.default_rng(11)
LENGTHS = (3, 1, 2)
TOTAL, TOP = sum(LENGTHS), 4
OWNER = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
POLICY = -RNG.uniform(0.5, 6.0, (TOTAL, TOP))
TEACHER = -RNG.uniform(0.1, 5.0, (TOTAL, TOP))
SAMPLED = -RNG.uniform(0.1, 3.0, TOTAL)
ADVANTAGE = np.array([0.8, -1.2, 0.4])
KINDS = [("jsd", 0.9), ("jsd", 0.5), ("jsd", 0.1), ("forward", 0.5)]


def oracle(policy: np.ndarray, kind: str, alpha: float) -> np.ndarray:
    """One token and one of the likeliest tokens at a time."""
    found = []
    for ours, theirs in zip(policy, TEACHER, strict=True):
        whole = math.fsum(math.exp(each) for each in theirs)
        total = 0.0
        for log_p, log_q in zip(ours, theirs, strict=True):
            p, q = math.exp(log_p), math.exp(log_q) / whole
            if kind == "forward":
                total += q * (math.log(q) - log_p)
                continue
            m = alpha * q + (1 - alpha) * p
            total += alpha * q * math.log(q / m) + (1 - alpha) * p * math.log(p / m)
        found.append(total)
    return np.array(found)


@pytest.mark.parametrize(("kind", "alpha"), KINDS)
def test_a_divergence_and_its_gradient(kind: str, alpha: float) -> None:
    policy = torch.tensor(POLICY, requires_grad=True)
    found = top_divergence(policy, torch.tensor(TEACHER), kind, alpha)  # pyright: ignore[reportArgumentType]
    np.testing.assert_allclose(found.detach().numpy(), oracle(POLICY, kind, alpha), rtol=1e-12)
    found.sum().backward()
    assert policy.grad is not None
    step = 1e-6
    for at in np.ndindex(POLICY.shape):
        more, less = POLICY.copy(), POLICY.copy()
        more[at] += step
        less[at] -= step
        slope = (oracle(more, kind, alpha).sum() - oracle(less, kind, alpha).sum()) / (2 * step)
        assert float(policy.grad[at]) == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("policy_coef", [0.0, 1.0, 0.3])
def test_the_loss_of_a_batch_beside_rewards_and_alone(policy_coef: float) -> None:
    settings = LossSettings(
        surrogate="reinforce",
        mean="sequence",
        policy_coef=policy_coef,
        teacher_kl="jsd",
        teacher_coef=0.7,
        jsd_alpha=0.9,
    )
    sampled = torch.tensor(SAMPLED)
    tokens = Tokens(
        logprobs=sampled,
        old=sampled,
        generator=sampled,
        advantages=torch.tensor(ADVANTAGE[OWNER]),
        owner=torch.tensor(OWNER),
        teacher_top=torch.tensor(TEACHER),
        policy_top=torch.tensor(POLICY),
    )
    found = policy_loss(tokens, settings, Normalizer(TOTAL, len(LENGTHS)))
    terms = -policy_coef * ADVANTAGE[OWNER] + 0.7 * oracle(POLICY, "jsd", 0.9)
    means = [terms[sequence == OWNER].mean() for sequence in range(len(LENGTHS))]
    assert float(found.value) == pytest.approx(np.mean(means), rel=1e-12)
    assert float(found.sums["teacher_kl"]) == pytest.approx(oracle(POLICY, "jsd", 0.9).sum(), rel=1e-12)


@pytest.mark.parametrize("chunk", [1 << 23, 200])
def test_the_head_gives_other_tokens_and_the_likeliest_ones(chunk: int) -> None:
    model = random_policy("llama", torch.float64).model.train()
    sample = Sample((5, 6, 7), (8, 9, 10, 11))
    logits = model(torch.tensor([sample.prompt + sample.completion])).logits[0, 2:-1]
    logs = torch.log_softmax(logits / 0.7, -1)
    others = torch.tensor([[3, 8], [9, 9], [1, 2], [20, 4]])
    weights = torch.linspace(-1, 2, 8, dtype=torch.float64).view(4, 2)
    expected = logs.gather(1, others)
    (weights * expected).sum().backward()
    wanted = {name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None}
    model.zero_grad()
    (batch,) = micro_batches([sample], 100)
    scores = token_logprobs(model, batch, 0.7, others=others, top=3, chunk=chunk)
    assert scores.others is not None
    assert scores.top is not None
    torch.testing.assert_close(scores.others, expected.detach(), atol=1e-9, rtol=0)
    values, ids = logs.detach().topk(3, -1)
    assert torch.equal(scores.top[0], ids)
    torch.testing.assert_close(scores.top[1], values, atol=1e-9, rtol=0)
    (weights * scores.others).sum().backward()
    for name, value in model.named_parameters():
        torch.testing.assert_close(value.grad, wanted[name], atol=1e-9, rtol=0)
