"""Action masks against float64 numpy: probabilities, entropies, gradients, choices and targets."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from operant.engines.torch import losses
from operant.engines.torch.policies import Categorical, EpsilonGreedy
from operant.envs.vector.actions import uniform_action


def case(rows: int = 64, actions: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits, masks of every size from one action to all, and a legal action of each row."""
    rng = np.random.default_rng(0)
    logits = 3 * rng.normal(size=(rows, actions))
    mask = rng.random((rows, actions)) < rng.random((rows, 1))
    mask[np.arange(rows), rng.integers(actions, size=rows)] = True
    return logits, mask, uniform_action(rng.random(rows), actions, mask)


def expected(logits: np.ndarray, mask: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log p(a) and H(p) of a softmax over the legal actions alone."""
    logp, entropy = [], []
    for row, legal, chosen in zip(logits, mask, action, strict=True):
        weights = np.exp(row[legal] - row[legal].max())
        p = weights / weights.sum()
        logp.append(np.log(p[legal[:chosen].sum()]))
        entropy.append(-(p * np.log(p)).sum())
    return np.array(logp), np.array(entropy)


def test_masked_log_probabilities_and_entropies():
    logits, mask, action = case()
    found = Categorical(5).log_prob_and_entropy(
        torch.from_numpy(logits.astype(np.float32)), torch.from_numpy(action), None, torch.from_numpy(mask)
    )
    for got, want in zip(found, expected(logits, mask, action), strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)


def test_masked_gradients_are_finite_and_leave_illegal_actions_alone():
    logits, mask, action = case()
    output = torch.from_numpy(logits).requires_grad_()
    logp, entropy = Categorical(5).log_prob_and_entropy(output, torch.from_numpy(action), None, torch.from_numpy(mask))
    (logp + entropy).sum().backward()
    assert output.grad is not None
    assert torch.isfinite(output.grad).all()
    assert (output.grad.numpy()[~mask] == 0).all()
    step = 1e-6
    i, j = np.argwhere(mask & (mask.sum(1, keepdims=True) > 1))[0]
    ahead, behind = (logits + s * (np.arange(5) == j) * (np.arange(64) == i)[:, None] for s in (step, -step))
    numeric = sum(e.sum() for e in expected(ahead, mask, action)) - sum(e.sum() for e in expected(behind, mask, action))
    assert float(output.grad[i, j]) == pytest.approx(numeric / (2 * step), rel=1e-4)


def test_a_mask_that_allows_all_changes_nothing():
    logits, _, action = case()
    output, all_legal = torch.from_numpy(logits), torch.ones(64, 5, dtype=torch.bool)
    free = Categorical(5).log_prob_and_entropy(output, torch.from_numpy(action), None)
    masked = Categorical(5).log_prob_and_entropy(output, torch.from_numpy(action), None, all_legal)
    assert all(torch.equal(a, b) for a, b in zip(free, masked, strict=True))


def test_masked_sampling_has_the_frequencies_of_the_legal_softmax():
    logits = np.log(np.array([0.1, 0.2, 0.3, 0.4], np.float32))
    mask = np.array([True, False, True, False])
    policy = Categorical(4)
    drawn = policy.sample(logits, policy.noise(np.random.default_rng(0), (40_000,)), None, mask)
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 40_000, [0.25, 0, 0.75, 0], atol=0.01)


def test_masked_exploration_is_uniform_over_what_is_legal_and_greedy_otherwise():
    values = np.broadcast_to(np.array([9.0, 1.0, 2.0, 3.0]), (40_000, 4))
    mask = np.broadcast_to(np.array([False, True, True, False]), (40_000, 4))
    policy = EpsilonGreedy(4, epsilon=0.5)
    drawn = policy.sample(values, policy.noise(np.random.default_rng(0), (40_000,)), None, mask)
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 40_000, [0, 0.25, 0.75, 0], atol=0.01)
    assert (policy.greedy(values, mask) == 2).all()


@pytest.mark.parametrize("noise", [0.0, 0.999999999])
def test_the_ends_of_the_noise_are_legal_too(noise: float):
    mask = np.array([[False, True, False, True], [False, False, True, False]])
    found = uniform_action(np.full(2, noise), 4, mask)
    assert found.tolist() == ([1, 2] if noise < 0.5 else [3, 2])


def test_the_epsilon_greedy_value_expects_legal_actions_only():
    rng = np.random.default_rng(1)
    _, mask, _ = case()
    q = rng.normal(size=mask.shape)
    found = losses.epsilon_greedy_value(torch.from_numpy(q), 0.3, torch.from_numpy(mask))
    want = [0.7 * row[legal].max() + 0.3 * row[legal].mean() for row, legal in zip(q, mask, strict=True)]
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-12)


def test_agrees_with_the_maskable_distribution_of_another_library():
    other = pytest.importorskip("sb3_contrib.common.maskable.distributions", reason="sb3-contrib is not installed")
    logits, mask, action = (torch.from_numpy(a) for a in case())
    peer = other.MaskableCategorical(logits=logits, masks=mask.numpy())
    logp, entropy = Categorical(5).log_prob_and_entropy(logits, action, None, mask)
    torch.testing.assert_close(logp, peer.log_prob(action))
    torch.testing.assert_close(entropy, peer.entropy())
