"""Losses of DQN and SAC on the same batch and weights, in the torch engine and in the jax one."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from operant.engines.jax.crossq import CrossQ
from operant.engines.jax.dqn import Dqn
from operant.engines.jax.learners import build_learner
from operant.engines.jax.replay import Transition
from operant.engines.jax.sac import Sac
from operant.engines.jax.soft_actor_critic import Networks
from operant.engines.jax.td3 import Networks as Td3Networks
from operant.engines.jax.td3 import Td3
from operant.engines.jax.twin_critics import RunningNorm
from operant.engines.torch.buffers.replay import Batch
from operant.engines.torch.crossq import CrossQ as DeepCrossQ
from operant.engines.torch.dqn import Dqn as DeepDqn
from operant.engines.torch.learners import build_learner as build_deep
from operant.engines.torch.networks.batch_renorm import RenormCritic
from operant.engines.torch.networks.twin_critics import polyak_update
from operant.engines.torch.off_policy import Sample, critic_step
from operant.engines.torch.sac import Sac as DeepSac
from operant.engines.torch.sac import policy_step
from operant.engines.torch.td3 import Td3 as DeepTd3
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

ROWS = 32


def spec_of(env: str, engine: str, algorithm: dict[str, Any], **net: Any) -> Spec:
    agent = {"algorithm": {"training_start": 500, **algorithm}, "net": {"hidden": [32, 32], **net}}
    return Spec.model_validate({"engine": engine, "env": {"name": env, "max_frame": 10_000}, "agent": agent})


def layer(linear: torch.nn.Linear) -> dict[str, np.ndarray]:
    return {"weight": linear.weight.detach().numpy().T.copy(), "bias": linear.bias.detach().numpy().copy()}


def layers(module: torch.nn.Module) -> list[dict[str, np.ndarray]]:
    return [layer(each) for each in module.modules() if isinstance(each, torch.nn.Linear)]


def transitions(observation: int, action: np.ndarray) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    seen = rng.normal(size=(2, ROWS, observation)).astype(np.float32)
    reward = rng.normal(size=ROWS).astype(np.float32)
    return {
        "obs": seen[0],
        "next_obs": seen[1],
        "action": action,
        "reward": reward,
        "terminated": rng.random(ROWS) < 0.3,
    }


def as_transition(rows: dict[str, np.ndarray]) -> Transition:
    names = ("obs", "action", "reward", "next_obs", "terminated")
    return Transition(*(jnp.asarray(rows[name]) for name in names))


def critics(net: Any) -> list[dict[str, np.ndarray]]:
    pairs = zip(net.weights, net.biases, strict=True)
    return [{"weight": w.detach().numpy().copy(), "bias": b.detach().numpy()[:, 0].copy()} for w, b in pairs]


def assert_close(found: Any, expected: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), found, expected)


@pytest.mark.parametrize("settings", [{"double": True, "loss": "huber"}, {"double": False, "loss": "mse"}])
def test_one_dqn_loss_agrees(settings: dict[str, Any]):
    algorithm = {"name": "dqn", **settings}
    deep = build_deep(spec_of("CartPole-v1", "torch", algorithm, duelling=True), Seeds(3), torch.device("cpu"))
    fused = build_learner(spec_of("CartPole-v1", "jax", algorithm, duelling=True))
    assert isinstance(deep, DeepDqn)
    assert isinstance(fused, Dqn)
    with torch.no_grad():
        for number, parameter in enumerate(deep.target.parameters()):
            parameter.add_(0.05 * (number + 1))
    rows = transitions(4, np.random.default_rng(1).integers(2, size=ROWS))
    batch = Batch(index=np.arange(ROWS), weight=None, discount=None, next_mask=None, **rows)
    chosen, deep_error, expected = deep.errors(batch)

    def weights(net: Any) -> dict[str, Any]:
        return {"trunk": layers(net.trunk), "advantage": layer(net.advantage), "state": layer(net.state_value)}

    loss, ((_, mean), error) = fused.loss(
        weights(deep.net), weights(deep.target), None, as_transition(rows), jnp.float32(deep.algorithm.gamma)
    )
    assert float(loss) == pytest.approx(expected.item(), rel=1e-5)
    assert float(mean) == pytest.approx(chosen.mean().item(), rel=1e-5)
    np.testing.assert_allclose(error, deep_error.detach().numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("env", "settings"),
    [
        pytest.param("CartPole-v1", {"critic_reduction": "mean", "loss": "huber"}, marks=pytest.mark.slow),
        ("Pendulum-v1", {}),
    ],
)
def test_one_sac_step_agrees(env: str, settings: dict[str, Any]):
    """A critic's step, then the policy's and the temperature's, all with the same noise."""
    algorithm = {"name": "sac", "temperature": 0.3, **settings}
    deep = build_deep(spec_of(env, "torch", algorithm, activation="relu"), Seeds(3), torch.device("cpu"))
    spec = spec_of(env, "jax", algorithm, activation="relu")
    fused = build_learner(spec)
    assert isinstance(deep, DeepSac)
    assert isinstance(fused, Sac)
    rng = np.random.default_rng(1)
    real = rng.uniform(-1, 1, (ROWS, 1)).astype(np.float32)
    rows = transitions(fused.env.observation_shape[0], rng.integers(2, size=ROWS) if fused.discrete else real)
    noise = rng.normal(size=(2, ROWS, fused.count)).astype(np.float32)

    start = fused.init(jax.random.key(0), {"actor": layers(deep.policy), "critic": critics(deep.critic)}, None)
    learner = start.learner
    networks = Networks(
        start.policy.params["actor"],
        learner.critic,
        learner.target,
        learner.log_alpha,
        learner.opt_states,
        learner.steps,
    )
    hyper = fused.hyper(spec)
    networks, _, of_critics = fused.critic_step(networks, as_transition(rows), noise[0], hyper, jnp.float32(1), None)
    networks, of_policy = fused.policy_step(networks, as_transition(rows), noise[1], hyper, jnp.float32(1), None)
    tensors = {name: torch.from_numpy(value) for name, value in rows.items()}
    sample = Sample(index=np.arange(ROWS), weight=None, **tensors)
    alpha = deep.temperature.value()
    expected = deep.critic_step(sample, alpha, torch.from_numpy(noise[0]))
    loss, logp = policy_step(deep, sample, alpha, torch.from_numpy(noise[1]))
    deep.temperature.update(logp)
    np.testing.assert_allclose(of_critics, [part.item() for part in expected], rtol=1e-4)
    np.testing.assert_allclose(of_policy, [loss.item(), -logp.mean().item(), alpha.item()], rtol=1e-4)
    assert_close(networks.critic, critics(deep.critic))
    assert_close(networks.actor, layers(deep.policy))
    assert float(networks.log_alpha) == pytest.approx(deep.temperature.log_alpha.item(), abs=1e-6)


def test_one_td3_step_agrees():
    """A critic's step with the same noise, then the policy's, then all targets."""
    algorithm = {"name": "td3", "policy_delay": 1, "polyak": 0.1, "target_noise": 0.4}
    deep = build_deep(spec_of("Pendulum-v1", "torch", algorithm, activation="relu"), Seeds(3), torch.device("cpu"))
    spec = spec_of("Pendulum-v1", "jax", algorithm, activation="relu")
    fused = build_learner(spec)
    assert isinstance(deep, DeepTd3)
    assert isinstance(fused, Td3)
    rows = transitions(3, np.random.default_rng(1).uniform(-1, 1, (ROWS, 1)).astype(np.float32))
    deep.rng_noise = np.random.default_rng(5)
    noise = np.random.default_rng(5).standard_normal((ROWS, 1), dtype=np.float32)
    start = fused.init(jax.random.key(0), {"actor": layers(deep.policy), "critic": critics(deep.critic)}, None)
    networks, hyper = Td3Networks(start.policy.params["actor"], *start.learner[:5]), fused.hyper(spec)
    networks, _, _ = fused.critic_step(networks, as_transition(rows), jnp.asarray(noise), hyper, jnp.float32(1), None)
    networks, loss = fused.policy_step(networks, as_transition(rows), hyper, jnp.float32(1), None)
    sample = Sample(index=np.arange(ROWS), weight=None, **{k: torch.from_numpy(v) for k, v in rows.items()})
    deep.critic_step(sample)
    deep.policy_step(sample)
    polyak_update(deep.target, deep.critic, 0.1)
    polyak_update(deep.target_policy, deep.policy, 0.1)
    assert float(loss) == pytest.approx(deep.tracker.flush()["loss/policy"], rel=1e-4)
    assert_close(networks.critic, critics(deep.critic))
    assert_close(networks.actor, layers(deep.policy))
    assert_close(networks.target, critics(deep.target))
    assert_close(networks.target_actor, layers(deep.target_policy))


@pytest.mark.parametrize("env", [pytest.param("CartPole-v1", marks=pytest.mark.slow), "Pendulum-v1"])
def test_crossq_steps_agree(env: str):
    """Three steps of the critics and one of the policy; by the last, statistics correct what is learned."""
    algorithm = {"name": "crossq", "renorm_warm_up": 1, "renorm_momentum": 0.3, "temperature": 0.3}
    deep = build_deep(spec_of(env, "torch", algorithm, activation="relu"), Seeds(3), torch.device("cpu"))
    spec = spec_of(env, "jax", algorithm, activation="relu")
    fused = build_learner(spec)
    assert isinstance(deep, DeepCrossQ)
    assert isinstance(fused, CrossQ)
    assert isinstance(deep.critic, RenormCritic)
    modules: Any = deep.critic.norms
    rng = np.random.default_rng(1)
    real = rng.uniform(-1, 1, (ROWS, 1)).astype(np.float32)
    rows = transitions(fused.env.observation_shape[0], rng.integers(2, size=ROWS) if fused.discrete else real)
    noise = rng.normal(size=(4, ROWS, fused.count)).astype(np.float32)

    def weights() -> dict[str, Any]:
        norms = [{"scale": n.scale.detach().numpy(), "shift": n.shift.detach().numpy()} for n in modules]
        return {"layers": critics(deep.critic.twin), "norms": jax.tree.map(np.copy, norms)}

    start = fused.init(jax.random.key(0), {"actor": layers(deep.policy), "critic": weights()}, None)
    networks, hyper = Networks(start.policy.params["actor"], *start.learner[:5]), fused.hyper(spec)
    sample = Sample(index=np.arange(ROWS), weight=None, **{k: torch.from_numpy(v) for k, v in rows.items()})
    alpha = deep.temperature.value()
    for number in range(3):
        networks, _, _ = fused.critic_step(networks, as_transition(rows), noise[number], hyper, jnp.float32(1), None)
        q, target = deep.values_and_targets(sample, alpha, torch.from_numpy(noise[number]))
        critic_step(deep.collector, deep.critic_optimizer, sample, q, target)
    networks, _ = fused.policy_step(networks, as_transition(rows), noise[3], hyper, jnp.float32(1), None)
    policy_step(deep, sample, alpha, torch.from_numpy(noise[3]))
    assert_close(networks.critic, weights())
    assert_close(networks.actor, layers(deep.policy))
    running = [RunningNorm(n.mean.numpy(), n.deviation.numpy()) for n in modules]
    assert_close(networks.target, running)
