"""Log-probabilities, entropies and sampling of the action distributions against float64 numpy."""

from __future__ import annotations

import numpy as np
import torch

from operant.engines.torch.policies import Boltzmann, Categorical, DiagonalGaussian, EpsilonGreedy


def test_categorical_terms():
    rng = np.random.default_rng(0)
    logits, action = rng.normal(size=(32, 5)), rng.integers(5, size=32)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    logp, entropy = Categorical(5).log_prob_and_entropy(
        torch.from_numpy(logits.astype(np.float32)), torch.from_numpy(action), None
    )
    np.testing.assert_allclose(logp.numpy(), np.log(p[np.arange(32), action]), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(entropy.numpy(), -(p * np.log(p)).sum(-1), rtol=1e-5, atol=1e-6)


def test_gaussian_terms():
    rng = np.random.default_rng(0)
    mean, action, log_std = rng.normal(size=(32, 3)), rng.normal(size=(32, 3)), rng.normal(size=3) * 0.3
    std = np.exp(log_std)
    density = np.exp(-0.5 * ((action - mean) / std) ** 2) / (std * np.sqrt(2 * np.pi))
    logp, entropy = DiagonalGaussian(3).log_prob_and_entropy(
        *(torch.from_numpy(a.astype(np.float32)) for a in (mean, action, log_std))
    )
    np.testing.assert_allclose(logp.numpy(), np.log(density).sum(-1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(entropy.numpy(), (0.5 * np.log(2 * np.pi * np.e * std**2)).sum(), rtol=1e-5)


def test_gumbel_sampling_has_the_softmax_frequencies():
    logits = np.log(np.array([0.1, 0.2, 0.7], np.float32))
    policy = Categorical(3)
    drawn = policy.sample(logits, policy.noise(np.random.default_rng(0), (40_000,)), None)
    np.testing.assert_allclose(np.bincount(drawn) / 40_000, [0.1, 0.2, 0.7], atol=0.01)


def test_gaussian_sampling_has_the_stated_moments():
    policy = DiagonalGaussian(2)
    noise = policy.noise(np.random.default_rng(0), (40_000,))
    drawn = policy.sample(np.array([1.0, -2.0]), noise, np.log(np.array([0.5, 2.0])))
    np.testing.assert_allclose(drawn.mean(0), [1.0, -2.0], atol=0.03)
    np.testing.assert_allclose(drawn.std(0), [0.5, 2.0], rtol=0.02)


def test_each_environment_explores_by_itself():
    policy = EpsilonGreedy(4, epsilon=0.4)
    noise = policy.noise(np.random.default_rng(0), (10_000, 4))
    drawn = policy.sample(np.broadcast_to([0.0, 0.0, 9.0, 0.0], (10_000, 4, 4)), noise, None)
    other = drawn != 2
    np.testing.assert_allclose(other.mean(), 0.4 * 3 / 4, atol=0.01)
    assert 0 < np.corrcoef(other[:, 0], other[:, 1])[0, 1] ** 2 < 0.001


def test_boltzmann_plays_by_the_softmax_of_values_over_temperature():
    q, policy = np.array([1.0, 1.5, 0.2]), Boltzmann(3, temperature=0.5)
    noise = policy.noise(np.random.default_rng(5), (200_000,))
    chosen = policy.sample(q, noise, None)
    expected = np.exp(q / 0.5) / np.exp(q / 0.5).sum()
    np.testing.assert_allclose(np.bincount(chosen) / len(chosen), expected, atol=0.004)
    np.testing.assert_array_equal(Boltzmann(3, temperature=0.0).sample(q, noise[:50], None), np.ones(50))
    assert policy.greedy(q) == 1
