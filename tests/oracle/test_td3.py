"""TD3's smoothed target and its schedule of updates against float64 numpy."""

from __future__ import annotations

import numpy as np
import torch

from operant.engines.torch import losses
from operant.engines.torch.off_policy import Sample
from operant.engines.torch.policies import NoisyTanh
from operant.engines.torch.td3 import Td3
from operant.run.seeding import Seeds
from operant.spec.schema import Spec


def tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(array, np.float32))


def build(**algorithm: float) -> Td3:
    agent = {"algorithm": {"name": "td3", "gamma": 0.9, **algorithm}, "net": {"hidden": [16]}}
    return Td3(Spec.model_validate({"env": {"name": "Pendulum-v1"}, "agent": agent}), Seeds(0), torch.device("cpu"))


def flat(net: torch.nn.Module) -> np.ndarray:
    return np.concatenate([p.detach().numpy().ravel().copy() for p in net.parameters()])


def test_target_action_is_smoothed_within_both_limits():
    rng = np.random.default_rng(0)
    action, noise = np.tanh(rng.normal(size=(256, 2))), rng.normal(size=(256, 2))
    exact = np.clip(action + np.clip(0.6 * noise, -0.5, 0.5), -1, 1)
    found = losses.smoothed_action(tensor(action), tensor(noise), 0.6, 0.5).numpy()
    np.testing.assert_allclose(found, exact, atol=1e-6)
    assert (np.abs(exact) == 1).any()


def test_target_takes_the_smaller_critic_and_nothing_beyond_termination():
    learner = build(target_noise=0.3, target_noise_clip=0.4)
    rng = np.random.default_rng(1)
    next_obs, noise, reward = rng.normal(size=(32, 3)), rng.normal(size=(32, 1)), rng.normal(size=32)
    terminated = rng.random(32) < 0.5
    zeros = torch.zeros(32, 3)
    batch = Sample(np.arange(32), zeros, zeros, tensor(reward), tensor(next_obs), torch.from_numpy(terminated), None)
    found = learner.targets(batch, tensor(noise)).numpy()
    mean = np.tanh(learner.target_policy(tensor(next_obs)).numpy().astype(np.float64))
    action = np.clip(mean + np.clip(0.3 * noise, -0.4, 0.4), -1, 1)
    both = learner.target(tensor(np.concatenate((next_obs, action), -1))).numpy()[..., 0]
    assert (both[0] < both[1]).any()
    assert (both[1] < both[0]).any()
    np.testing.assert_allclose(found, reward + 0.9 * np.where(terminated, 0, both.min(0)), rtol=1e-4, atol=1e-5)


def test_policy_and_targets_move_only_at_every_delayed_step():
    learner = build(policy_delay=3, training_start=64, training_iter=1)
    while learner.tracker.frames < 60:
        learner.iterate()
    moved = []
    for _ in range(6):
        parts = (learner.policy, learner.target, learner.target_policy, learner.critic)
        before = [flat(net) for net in parts]
        learner.iterate()
        moved.append([bool((flat(net) != old).any()) for net, old in zip(parts, before, strict=True)])
    assert moved == [[step % 3 == 0] * 3 + [True] for step in range(1, 7)]


def test_exploration_adds_its_deviation_and_stays_in_bounds():
    policy = NoisyTanh(1, deviation=0.2)
    noise = policy.noise(np.random.default_rng(2), (40_000,))
    drawn = policy.sample(np.zeros((40_000, 1), np.float32), noise, None)
    np.testing.assert_allclose([drawn.mean(), drawn.std()], [0, 0.2], atol=0.005)
    assert np.abs(policy.sample(np.full((40_000, 1), 2.0), noise, None)).max() == 1
    np.testing.assert_array_equal(policy.greedy(np.array([[0.5]])), np.tanh([[0.5]]))
