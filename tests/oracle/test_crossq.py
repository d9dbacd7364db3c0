"""Batch renormalization and CrossQ's joint pass against float64 numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from operant.engines.torch.crossq import CrossQ
from operant.engines.torch.networks.batch_renorm import BatchRenorm, RenormCritic, limits
from operant.engines.torch.networks.twin_critics import TwinCritic
from operant.engines.torch.off_policy import Sample
from operant.engines.torch.sac import Temperature
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.nets import MlpSpec
from operant.spec.settings.off_policy import SacSpec
from operant.spec.settings.optimizers import OptimizerSpec


def tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(array, np.float32))


def renormalize(x: np.ndarray, mean: np.ndarray, deviation: np.ndarray, r_max: float, d_max: float) -> np.ndarray:
    """Ioffe's algorithm 1 over the rows of x [B, F], without scale and shift."""
    m, s = x.mean(0), np.sqrt(x.var(0) + 1e-3)
    r = np.clip(s / deviation, 1 / r_max, r_max)
    d = np.clip((m - mean) / deviation, -d_max, d_max)
    return (x - m) / s * r + d


def build(env: str, **algorithm: object) -> CrossQ:
    agent = {"algorithm": {"name": "crossq", "gamma": 0.9, **algorithm}, "net": {"hidden": [16]}}
    return CrossQ(Spec.model_validate({"env": {"name": env}, "agent": agent}), Seeds(0), torch.device("cpu"))


@pytest.mark.parametrize(
    ("step", "expected"),
    [(0, (1, 0)), (5000, (1, 0)), (15_000, (1 + 2 * 2 / 7, 2.5)), (25_000, (1 + 2 * 4 / 7, 5)), (40_000, (3, 5))],
)
def test_limits_are_those_of_the_paper_for_a_warm_up_of_5000(step: int, expected: tuple[float, float]):
    assert limits(step, 5000) == pytest.approx(expected)
    assert limits(step + 100_000, 5000) == (3, 5)


@pytest.mark.parametrize("widest", [(1.0, 0.0), (1.5, 0.3), (3.0, 5.0)])
def test_each_critic_is_renormalised_by_itself_and_its_statistics_follow(widest: tuple[float, float]):
    rng = np.random.default_rng(0)
    norm = BatchRenorm(4, momentum=0.1)
    mean, deviation = rng.normal(size=(2, 1, 4)), rng.uniform(0.5, 2, (2, 1, 4))
    scale, shift = rng.normal(size=(2, 1, 4)), rng.normal(size=(2, 1, 4))
    with torch.no_grad():
        for part, values in zip(
            (norm.mean, norm.deviation, norm.scale, norm.shift), (mean, deviation, scale, shift), strict=True
        ):
            part.copy_(tensor(values))
    x = rng.normal(1.0, 1.5, (2, 32, 4))
    found = norm(tensor(x), *widest).detach().numpy()
    for k in range(2):
        expected = renormalize(x[k], mean[k, 0], deviation[k, 0], *widest) * scale[k] + shift[k]
        np.testing.assert_allclose(found[k], expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(norm.mean[k, 0], 0.9 * mean[k, 0] + 0.1 * x[k].mean(0), rtol=1e-4, atol=1e-5)
        moved = 0.9 * deviation[k, 0] + 0.1 * np.sqrt(x[k].var(0) + 1e-3)
        np.testing.assert_allclose(norm.deviation[k, 0], moved, rtol=1e-4)


def test_within_its_limits_learning_equals_judging():
    torch.manual_seed(0)
    norm = BatchRenorm(3, momentum=0.01)
    x = torch.randn(2, 64, 3)
    judged = norm.forward_frozen(x, 2)
    torch.testing.assert_close(norm(x, 1e6, 1e6), judged, rtol=1e-4, atol=1e-5)


def test_no_gradient_flows_through_the_correction():
    torch.manual_seed(1)
    norm = BatchRenorm(1, momentum=0.01)
    x = torch.randn(2, 16, 1, requires_grad=True)
    norm(x, 3.0, 5.0).sum().backward()
    # The sum over a batch of (x - m) / s is 0 whatever x is, and r and d are constants.
    assert x.grad is not None
    torch.testing.assert_close(x.grad, torch.zeros_like(x), atol=1e-5, rtol=0)


def test_judging_uses_running_statistics_and_moves_only_its_input():
    torch.manual_seed(2)
    critic = RenormCritic(MlpSpec(hidden=(8,), activation="relu"), 3, 2, momentum=0.5, warm_up=10)
    for _ in range(3):
        critic(torch.randn(32, 3) * 2 + 1)
    before = [buffer.clone() for buffer in critic.buffers()]
    x = torch.randn(5, 3, requires_grad=True)
    critic.forward_frozen(x).sum().backward()
    assert all(torch.equal(old, new) for old, new in zip(before, critic.buffers(), strict=True))
    assert all(p.grad is None for p in critic.parameters())
    assert x.grad is not None
    rows = x.detach().numpy().astype(np.float64)
    for k in range(2):
        h = rows
        for layer, norm in enumerate(critic.norms):
            assert isinstance(norm, BatchRenorm)
            h = (h - norm.mean[k].numpy()) / norm.deviation[k].numpy()
            h = h @ critic.twin.weights[layer][k].detach().numpy() + critic.twin.biases[layer][k].detach().numpy()
            h = np.maximum(h, 0) if layer == 0 else h
        np.testing.assert_allclose(critic.forward_frozen(x)[k].detach().numpy(), h, rtol=1e-3, atol=1e-4)
    assert int(critic.steps) == 3


@pytest.mark.parametrize("env", ["Pendulum-v1", "CartPole-v1"])
def test_played_and_following_actions_are_valued_in_one_batch(env: str):
    learner = build(env)
    size, rng = learner.collector.vector.obs_shape[0], np.random.default_rng(3)
    obs, next_obs, reward = rng.normal(size=(32, size)), rng.normal(size=(32, size)), rng.normal(size=32)
    terminated, noise = rng.random(32) < 0.5, rng.normal(size=(32, 1))
    discrete = env == "CartPole-v1"
    action = torch.from_numpy(rng.integers(2, size=32)) if discrete else tensor(rng.uniform(-1, 1, (32, 1)))
    batch = Sample(
        np.arange(32), tensor(obs), action, tensor(reward), tensor(next_obs), torch.from_numpy(terminated), None
    )
    output = learner.policy(batch.next_obs).detach()
    drawn, logp = learner.actions.sample(output, tensor(noise))
    asked = torch.cat((learner.actions.inputs(batch.obs, action), learner.actions.inputs(batch.next_obs, drawn)))
    together = learner.critic(asked).detach().numpy().astype(np.float64)
    q, target = learner.values_and_targets(batch, torch.tensor([0.4]), tensor(noise))
    smaller, p = together[:, 32:].min(0), drawn.numpy()
    ahead = (p * smaller).sum(-1) if discrete else smaller[:, 0]
    taken = together[:, np.arange(32), action.numpy()] if discrete else together[:, :32, 0]
    np.testing.assert_allclose(q.detach().numpy(), taken, rtol=1e-3, atol=1e-4)
    expected = reward + 0.9 * np.where(terminated, 0, ahead - 0.4 * logp.numpy())
    np.testing.assert_allclose(target.numpy(), expected, rtol=1e-3, atol=1e-4)
    assert not target.requires_grad


def test_policy_and_temperature_move_at_every_delayed_step():
    learner = build("Pendulum-v1", policy_delay=3, training_start=64, training_iter=1)
    while learner.tracker.frames < 60:
        learner.iterate()
    moved = []
    for _ in range(6):
        before = [p.detach().clone() for p in (*learner.policy.parameters(), learner.temperature.log_alpha)]
        learner.iterate()
        now = (*learner.policy.parameters(), learner.temperature.log_alpha)
        moved.append([not torch.equal(a, b) for a, b in zip(before, now, strict=True)])
    assert moved == [[step % 3 == 0] * len(moved[0]) for step in range(1, 7)]


def test_critics_may_have_hidden_layers_of_their_own():
    learner = build("Pendulum-v1", critic_hidden=[24, 12])
    assert isinstance(learner.critic, RenormCritic)
    assert [tuple(w.shape[1:]) for w in learner.critic.twin.weights] == [(4, 24), (24, 12), (12, 1)]
    assert [layer.out_features for layer in learner.policy if isinstance(layer, torch.nn.Linear)] == [16, 2]


def test_plain_critics_are_perceptrons_without_statistics():
    learner = build("CartPole-v1", batch_renorm=False, critic_reduction="mean")
    rng = np.random.default_rng(5)
    x = rng.normal(size=(8, 4))
    assert isinstance(learner.critic, TwinCritic)
    assert not list(learner.critic.buffers())
    for k in range(2):
        h = x
        for layer, (weight, bias) in enumerate(zip(learner.critic.weights, learner.critic.biases, strict=True)):
            h = h @ weight[k].detach().numpy().astype(np.float64) + bias[k].detach().numpy()
            h = h if layer == len(learner.critic.weights) - 1 else np.tanh(h)
        np.testing.assert_allclose(learner.critic(tensor(x))[k].detach().numpy(), h, rtol=1e-3, atol=1e-4)


def test_temperature_stays_within_its_bounds():
    settings = SacSpec(temperature=0.1, temperature_min=0.09, temperature_max=0.2)
    for logp, bound in ((-100.0, 0.09), (100.0, 0.2)):
        temperature = Temperature(settings, OptimizerSpec(lr=0.5), -1.0, torch.device("cpu"))
        for _ in range(5):
            temperature.update(torch.full((8,), logp))
        assert float(temperature.value()) == pytest.approx(bound)
