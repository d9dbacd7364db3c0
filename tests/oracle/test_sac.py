"""SAC's log-probabilities, expectations, targets and losses against float64 numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from operant.engines.torch import losses
from operant.engines.torch.networks.twin_critics import TwinCritic, polyak_update
from operant.engines.torch.off_policy import Sample
from operant.engines.torch.policies import TanhGaussian, tanh_gaussian_sample
from operant.engines.torch.sac import CategoricalActions, Sac, TanhGaussianActions
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.nets import MlpSpec


def tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(array, np.float32))


def squashed_log_density(mean: np.ndarray, log_std: np.ndarray, action: np.ndarray) -> np.ndarray:
    """log of N(atanh(a)) |da/du|^-1, as the change of variables has it."""
    u, std = np.arctanh(action), np.exp(log_std)
    normal = np.exp(-0.5 * ((u - mean) / std) ** 2) / (std * np.sqrt(2 * np.pi))
    return np.log(normal / (1 - action**2)).sum(-1)


def twin_by_hand(critic: TwinCritic, x: np.ndarray) -> np.ndarray:
    """Each of the two perceptrons by itself, in float64."""
    weights = [w.detach().numpy().astype(np.float64) for w in critic.weights]
    biases = [b.detach().numpy().astype(np.float64) for b in critic.biases]
    outputs = []
    for k in range(2):
        h = x
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            h = np.maximum(h @ weight[k] + bias[k], 0)
        outputs.append(h @ weights[-1][k] + biases[-1][k])
    return np.stack(outputs)


def test_squashed_log_probability():
    rng = np.random.default_rng(0)
    mean, log_std, noise = rng.normal(size=(64, 3)), rng.normal(size=(64, 3)) * 0.3 - 0.5, rng.normal(size=(64, 3))
    action, logp = tanh_gaussian_sample(tensor(np.concatenate((mean, log_std), -1)), tensor(noise))
    exact = np.tanh(mean + np.exp(log_std) * noise)
    np.testing.assert_allclose(action.numpy(), exact, atol=1e-6)
    np.testing.assert_allclose(logp.numpy(), squashed_log_density(mean, log_std, exact), rtol=1e-4, atol=1e-4)


def test_squashed_density_integrates_to_one():
    edges = np.linspace(-1, 1, 200_001)
    action = (edges[:-1] + edges[1:])[:, None] / 2
    density = np.exp(squashed_log_density(np.array([0.4]), np.array([-0.3]), action))
    assert density.sum() * (edges[1] - edges[0]) == pytest.approx(1, abs=1e-3)


def test_log_probability_is_finite_where_tanh_rounds_to_one():
    output = torch.tensor([[30.0, -1.0], [-30.0, -1.0]], requires_grad=True)
    action, logp = tanh_gaussian_sample(output, torch.zeros(2, 1))
    logp.sum().backward()
    assert action.detach().abs().eq(1).all()
    assert torch.isfinite(logp).all()
    assert output.grad is not None
    assert torch.isfinite(output.grad).all()
    # log(1 - tanh(u)^2) -> 2 log 2 - 2|u| far out.
    expected = -0.5 * np.log(2 * np.pi) + 1 - (2 * np.log(2) - 60)
    np.testing.assert_allclose(logp.detach().numpy(), expected, rtol=1e-5)


def test_acting_and_learning_draw_the_same_action():
    rng = np.random.default_rng(1)
    output, policy = rng.normal(size=(8, 4)).astype(np.float32), TanhGaussian(2)
    noise = policy.noise(rng, (8,))
    learning = tanh_gaussian_sample(tensor(output), tensor(noise))[0].numpy()
    np.testing.assert_allclose(policy.sample(output, noise, None), learning, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(policy.greedy(output), np.tanh(output[:, :2]))


def test_twin_critics_are_two_separate_networks():
    critic = TwinCritic(MlpSpec(hidden=(16, 8), activation="relu"), 5, 3)
    x = np.random.default_rng(2).normal(size=(32, 5))
    by_hand = twin_by_hand(critic, x)
    np.testing.assert_allclose(critic(tensor(x)).detach().numpy(), by_hand, rtol=1e-4, atol=1e-5)
    assert np.abs(by_hand[0] - by_hand[1]).min() > 0
    np.testing.assert_allclose(critic.forward_frozen(tensor(x)).numpy(), by_hand, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(critic.forward_frozen(tensor(x), critics=1).numpy(), by_hand[:1], rtol=1e-4, atol=1e-5)


def test_judging_moves_the_input_but_no_weight():
    critic = TwinCritic(MlpSpec(hidden=(8,)), 2, 1)
    x = torch.randn(4, 2, requires_grad=True)
    critic.forward_frozen(x).sum().backward()
    assert x.grad is not None
    assert x.grad.abs().sum() > 0
    assert all(p.grad is None for p in critic.parameters())


REDUCTIONS = [("min", np.min), ("mean", np.mean)]


@pytest.mark.parametrize(("reduction", "by_hand"), REDUCTIONS)
def test_expectation_over_squashed_actions_is_of_the_reduced_critics(reduction, by_hand):
    rng = np.random.default_rng(3)
    kind, critic = TanhGaussianActions(3, 2, reduction), TwinCritic(MlpSpec(hidden=(16,), activation="relu"), 5, 1)
    obs, mean, log_std = rng.normal(size=(32, 3)), rng.normal(size=(32, 2)), rng.normal(size=(32, 2)) * 0.2
    noise = rng.normal(size=(32, 2))
    q, logp = kind.expect(tensor(np.concatenate((mean, log_std), -1)), critic, tensor(obs), tensor(noise))
    action = np.tanh(mean + np.exp(log_std) * noise)
    both = twin_by_hand(critic, np.concatenate((obs, action), -1))[..., 0]
    np.testing.assert_allclose(q.detach().numpy(), by_hand(both, 0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(logp.detach().numpy(), squashed_log_density(mean, log_std, action), rtol=1e-3, atol=1e-3)
    assert kind.target_entropy(0.98) == -2


@pytest.mark.parametrize(("reduction", "by_hand"), REDUCTIONS)
def test_expectation_over_discrete_actions_is_exact(reduction, by_hand):
    rng = np.random.default_rng(4)
    kind, critic = CategoricalActions(3, 4, reduction), TwinCritic(MlpSpec(hidden=(16,), activation="relu"), 3, 4)
    obs, logits, action = rng.normal(size=(32, 3)), rng.normal(size=(32, 4)), rng.integers(4, size=32)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    both = twin_by_hand(critic, obs)
    q, logp = kind.expect(tensor(logits), critic, tensor(obs), torch.empty(0))
    np.testing.assert_allclose(q.detach().numpy(), (p * by_hand(both, 0)).sum(-1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(logp.detach().numpy(), (p * np.log(p)).sum(-1), rtol=1e-4, atol=1e-5)
    taken = kind.q_taken(critic(tensor(obs)), torch.from_numpy(action)).detach().numpy()
    np.testing.assert_allclose(taken, both[:, np.arange(32), action], rtol=1e-4, atol=1e-5)
    assert kind.target_entropy(0.98) == pytest.approx(0.98 * np.log(4))


def test_target_has_the_entropy_of_the_next_state_and_none_beyond_termination():
    spec = Spec.model_validate({"env": {"name": "Pendulum-v1"}, "agent": {"algorithm": {"name": "sac", "gamma": 0.9}}})
    learner = Sac(spec, Seeds(0), torch.device("cpu"))
    rng = np.random.default_rng(6)
    next_obs, noise, reward = rng.normal(size=(16, 3)), rng.normal(size=(16, 1)), rng.normal(size=16)
    terminated = rng.random(16) < 0.5
    zeros = torch.zeros(16, 3)
    batch = Sample(np.arange(16), zeros, zeros, tensor(reward), tensor(next_obs), torch.from_numpy(terminated), None)
    found = learner.targets(batch, torch.tensor([0.4]), tensor(noise)).numpy()
    output = learner.policy(tensor(next_obs)).detach().numpy().astype(np.float64)
    action = np.tanh(output[:, :1] + np.exp(output[:, 1:]) * noise)
    x = tensor(np.concatenate((next_obs, action), -1))
    soft = learner.target(x).numpy()[..., 0].min(0) - 0.4 * squashed_log_density(output[:, :1], output[:, 1:], action)
    np.testing.assert_allclose(found, reward + 0.9 * np.where(terminated, 0, soft), rtol=1e-3, atol=1e-4)


def test_policy_loss():
    rng = np.random.default_rng(5)
    q, logp = rng.normal(size=64), rng.normal(size=64)
    loss = losses.sac_policy_loss(tensor(q), tensor(logp), torch.tensor(0.3))
    assert float(loss) == pytest.approx(np.mean(0.3 * logp - q), rel=1e-4)


@pytest.mark.parametrize(("entropy", "sign"), [(0.5, -1), (3.0, 1)])
def test_temperature_rises_while_the_entropy_is_below_its_target(entropy: float, sign: int):
    log_alpha = torch.tensor([0.2], requires_grad=True)
    loss = losses.alpha_loss(log_alpha, torch.tensor([-entropy - 0.1, -entropy + 0.1]), 1.0)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(-0.2 * (1.0 - entropy), rel=1e-5)
    assert log_alpha.grad is not None
    assert float(log_alpha.grad) == pytest.approx(-(1.0 - entropy), rel=1e-5)
    assert np.sign(float(log_alpha.grad)) == sign


def test_target_critics_follow_by_polyak():
    quick, slow = (TwinCritic(MlpSpec(hidden=(4,)), 2, 1) for _ in range(2))
    before = [p.detach().clone().numpy() for p in slow.parameters()]
    polyak_update(slow, quick, 0.1)
    for old, new, target in zip(before, quick.parameters(), slow.parameters(), strict=True):
        np.testing.assert_allclose(
            target.detach().numpy(), 0.9 * old + 0.1 * new.detach().numpy(), rtol=1e-5, atol=1e-7
        )
