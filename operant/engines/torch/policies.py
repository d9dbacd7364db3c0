"""Action distributions: how a network's output becomes actions and log-probabilities.

Noise is drawn with numpy from the run's own seed stream, so a run's randomness is a few integers
in its checkpoint. Probabilities are computed by torch, where the gradient is needed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from operant.envs.vector.actions import uniform_action

LOG_2PI = math.log(2 * math.pi)
LOG_STD_RANGE = (-20.0, 2.0)  # of deviations that a network gives: wider ones overflow or never explore
ILLEGAL = -1e9  # output of an illegal action: its probability is exactly 0, and 0 log 0 stays 0 where -inf gives NaN


class Policy(ABC):
    """Turns policy outputs [..., K] into actions and their log-probabilities.

    `mask` [..., K] says which discrete actions are legal; None is all of them. Real actions have none.
    """

    @abstractmethod
    def noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """The randomness of `shape` actions, drawn in one go."""

    @abstractmethod
    def sample(
        self, output: np.ndarray, noise: np.ndarray, log_std: np.ndarray | None, mask: np.ndarray | None = None
    ) -> np.ndarray:
        """Actions that these outputs and this noise give."""

    @abstractmethod
    def greedy(self, output: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        """The most probable actions."""


class Distribution(Policy):
    """A policy whose log-probabilities have a gradient."""

    @abstractmethod
    def log_prob_and_entropy(
        self, output: Tensor, action: Tensor, log_std: Tensor | None, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Log-probability of each action, and the entropy of each distribution."""


class Uniform(Policy):
    """Every legal discrete action, or every real one in [-1, 1], equally often, whatever the output."""

    def __init__(self, size: int, discrete: bool) -> None:
        self._size = size
        self._discrete = discrete

    def noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.random(shape) if self._discrete else rng.uniform(-1, 1, (*shape, self._size))

    def sample(
        self, output: np.ndarray, noise: np.ndarray, log_std: np.ndarray | None, mask: np.ndarray | None = None
    ) -> np.ndarray:
        return uniform_action(noise, self._size, mask) if self._discrete else noise

    def greedy(self, output: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        """All are equally probable: the first legal one, or the middle."""
        shape = output.shape[:-1] if self._discrete else (*output.shape[:-1], self._size)
        return self.sample(output, np.zeros(shape), None, mask)


class EpsilonGreedy(Policy):
    """The best-valued action, or with probability `epsilon` a uniform one, decided per environment."""

    def __init__(self, actions: int, epsilon: float) -> None:
        self._actions = actions
        self.epsilon = epsilon

    def noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.random((*shape, 2))

    def sample(
        self, output: np.ndarray, noise: np.ndarray, log_std: np.ndarray | None, mask: np.ndarray | None = None
    ) -> np.ndarray:
        explore = noise[..., 0] < self.epsilon
        return np.where(explore, uniform_action(noise[..., 1], self._actions, mask), self.greedy(output, mask))

    def greedy(self, output: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        return only_legal(output, mask).argmax(-1)


class Boltzmann(Policy):
    """Actions with probabilities in proportion to exp(Q / temperature), by the Gumbel-max trick; 0 is greedy."""

    def __init__(self, actions: int, temperature: float) -> None:
        self._actions = actions
        self.temperature = temperature

    def noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.gumbel(size=(*shape, self._actions)).astype(np.float32)

    def sample(
        self, output: np.ndarray, noise: np.ndarray, log_std: np.ndarray | None, mask: np.ndarray | None = None
    ) -> np.ndarray:
        return (only_legal(output, mask) + self.temperature * noise).argmax(-1)

    def greedy(self, output: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        return only_legal(output, mask).argmax(-1)


class Categorical(Distribution):
    """Discrete actions, sampled by the Gumbel-max trick: argmax(logits + Gumbel noise)."""

    def __init__(self, actions: int) -> None:
        self._actions = actions

    def noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.gumbel(size=(*shape, self._actions)).astype(np.float32)

    def sample(
        self, output: np.ndarray, noise: np.ndarray, log_std: np.ndarray | None, mask: np.ndarray | None = None
    ) -> np.ndarray:
        return (only_legal(output, mask) + noise).argmax(-1)

    def greedy(self, output: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        return only_legal(output, mask).argmax(-1)

    def log_prob_and_entropy(
        self, output: Tensor, action: Tensor, log_std: Tensor | None, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        return categorical_terms(output if mask is None else torch.where(mask, output, ILLEGAL), action)


class DiagonalGaussian(Distribution):
    """Real actions, independent normals around the output with a learnt deviation."""

    def __init__(self, size: int) -> None:
        self._size = size

    def noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.standard_normal((*shape, self._size), dtype=np.float32)

    def sample(
        self, output: np.ndarray, noise: np.ndarray, log_std: np.ndarray | None, mask: np.ndarray | None = None
    ) -> np.ndarray:
        assert log_std is not None, "a Gaussian policy has a deviation"
        return output + np.exp(log_std) * noise

    def greedy(self, output: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        return output

    def log_prob_and_entropy(
        self, output: Tensor, action: Tensor, log_std: Tensor | None, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        assert log_std is not None, "a Gaussian policy has a deviation"
        return gaussian_terms(output, log_std, action)


class TanhGaussian(Policy):
    """Real actions in (-1, 1): the tanh of normals whose means and log deviations the network gives."""

    def __init__(self, size: int) -> None:
        self._size = size

    def noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.standard_normal((*shape, self._size), dtype=np.float32)

    def sample(
        self, output: np.ndarray, noise: np.ndarray, log_std: np.ndarray | None, mask: np.ndarray | None = None
    ) -> np.ndarray:
        mean, raw = output[..., : self._size], output[..., self._size :]
        return np.tanh(mean + np.exp(raw.clip(*LOG_STD_RANGE)) * noise)

    def greedy(self, output: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        return np.tanh(output[..., : self._size])


class NoisyTanh(Policy):
    """Deterministic real actions, the tanh of the output, explored by normal noise of one `deviation`."""

    def __init__(self, size: int, deviation: float) -> None:
        self._size = size
        self.deviation = deviation

    def noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.standard_normal((*shape, self._size), dtype=np.float32)

    def sample(
        self, output: np.ndarray, noise: np.ndarray, log_std: np.ndarray | None, mask: np.ndarray | None = None
    ) -> np.ndarray:
        return (np.tanh(output) + self.deviation * noise).clip(-1, 1)

    def greedy(self, output: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        return np.tanh(output)


def only_legal(output: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Outputs with those of illegal actions so low that none of them is chosen."""
    return output if mask is None else np.where(mask, output, ILLEGAL)


def categorical_terms(logits: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
    """log p(a) and H(p) of softmax(logits)."""
    log_p = torch.log_softmax(logits, -1)
    chosen = log_p.gather(-1, action.unsqueeze(-1)).squeeze(-1)
    return chosen, -(log_p.exp() * log_p).sum(-1)


def gaussian_terms(mean: Tensor, log_std: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
    """log N(a; mean, exp(log_std)^2) summed over dimensions, and the entropy."""
    z = (action - mean) * (-log_std).exp()
    log_p = (-0.5 * z.square() - log_std - 0.5 * LOG_2PI).sum(-1)
    entropy = (log_std + 0.5 + 0.5 * LOG_2PI).sum(-1)
    return log_p, entropy.expand(log_p.shape)


def tanh_gaussian_sample(output: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """a = tanh(u) for u = mean + std noise, and log p(a) = log N(u) - sum log(1 - tanh(u)^2).

    The last logarithm is taken as 2 (log 2 - u - softplus(-2u)): equal, and finite where tanh(u)
    rounds to 1. Outputs [..., 2K] are means and log deviations.
    """
    mean, raw = output.chunk(2, -1)
    log_std = raw.clamp(*LOG_STD_RANGE)
    u = torch.addcmul(mean, log_std.exp(), noise)
    log_slope = 2 * (math.log(2) - u - functional.softplus(-2 * u))
    log_p = -0.5 * noise.square() - log_std - 0.5 * LOG_2PI - log_slope
    return u.tanh(), log_p.sum(-1)
