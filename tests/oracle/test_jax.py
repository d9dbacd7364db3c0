"""The same update on the same batch and weights, in the torch engine and in the jax one."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from operant.engines.jax import losses
from operant.engines.jax.learner import Policy, TrainState
from operant.engines.jax.learners import build_learner
from operant.engines.jax.platform import compiler_options
from operant.engines.jax.ppo import Ppo, Samples
from operant.engines.jax.program import Program, stacked
from operant.engines.torch import advantages
from operant.engines.torch.learners import build_learner as build_deep
from operant.engines.torch.on_policy import collect
from operant.engines.torch.ppo import Ppo as DeepPpo
from operant.engines.torch.ppo import Samples as DeepSamples
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

ENVS, STEPS = 4, 64
CASES: dict[str, dict[str, Any]] = {
    "discrete": {
        "env": "CartPole-v1",
        "algorithm": {"entropy_coef": 0.02, "val_loss": "huber"},
        "net": {"activation": "sigmoid"},
    },
    "continuous": {
        "env": "Pendulum-v1",
        "algorithm": {"clip_vloss": 0.3, "normalize_advantages": "none"},
        "net": {"shared": True, "activation": "relu", "optimizer": {"clip_each": True, "critic_lr": 1e-3}},
    },
    "apart": {"env": "Pendulum-v1", "algorithm": {"critic_hidden": [16], "normalize_v_targets": True}, "net": {}},
}


def spec_of(case: dict[str, Any], engine: str, epochs: int = 3) -> Spec:
    sizes = {"time_horizon": STEPS, "minibatch_size": ENVS * STEPS, "training_epoch": epochs}
    env = {"name": case["env"], "num_envs": ENVS, "max_frame": 10_000}
    agent = {"algorithm": {"name": "ppo", **sizes, **case["algorithm"]}, "net": {"hidden": [32, 32], **case["net"]}}
    return Spec.model_validate({"engine": engine, "env": env, "agent": agent})


def weights_of(net: torch.nn.Module) -> dict[str, Any]:
    """A torch actor-critic's weights as the jax engine keeps them."""
    parts: dict[str, Any] = {"trunk": [], "actor": [], "critic": []}
    for name, part in parts.items():
        for layer in getattr(net, name).modules():
            if isinstance(layer, torch.nn.Linear):
                numbers = layer.weight.detach().numpy().T.copy(), layer.bias.detach().numpy().copy()
                part.append(dict(zip(("weight", "bias"), numbers, strict=True)))
    log_std = getattr(net, "log_std", None)
    return parts if log_std is None else {**parts, "log_std": log_std.detach().numpy().copy()}


def deep_rollout(case: dict[str, Any]) -> tuple[DeepPpo, Any]:
    deep = build_deep(spec_of(case, "torch"), Seeds(3), torch.device("cpu"))
    assert isinstance(deep, DeepPpo)
    rollout = collect(deep.vector, deep.actor, deep.rewards, deep.rng_act, STEPS)
    deep.tracker.frames = ENVS * STEPS
    return deep, rollout


def as_samples(samples: DeepSamples) -> Samples:
    action = jnp.asarray(samples.action.numpy())
    columns = (samples.logp, samples.value, samples.advantage, samples.target)
    estimates = np.stack([part.numpy() for part in columns], -1)
    return Samples(jnp.asarray(samples.obs.obs.numpy()), None, action, jnp.asarray(estimates))


@pytest.mark.parametrize("name", CASES)
def test_one_ppo_update_agrees(name: str):
    deep, rollout = deep_rollout(CASES[name])
    spec = spec_of(CASES[name], "jax")
    fused = build_learner(spec)
    assert isinstance(fused, Ppo)
    weights, returns = weights_of(deep.net), deepcopy(deep.returns)
    samples, deep.returns = as_samples(deep.samples(rollout)), returns  # the update counts these returns once more
    told = deep.update(rollout)
    start = jax.jit(fused.init, static_argnums=2)(jax.random.key(0), weights, None)
    state = TrainState(Policy(start.policy.params, None), start.learner, None)
    frame, hyper = jnp.float32(ENVS * STEPS), fused.hyper(spec)
    learn = jax.jit(lambda state: fused.learn(state, samples, jax.random.key(1), hyper, frame, None))
    params, _, reports, steps = learn(state)
    expected = weights_of(deep.net)
    moved = jax.tree.map(lambda new, old: np.abs(new - old).max(), expected, weights)
    assert min(jax.tree.leaves(moved)) > 1e-5, "the update moves every layer, or this test shows nothing"
    jax.tree.map(lambda mine, theirs: np.testing.assert_allclose(mine, theirs, atol=1e-5), params, expected)
    np.testing.assert_allclose(reports, list(told.values())[:6], atol=1e-5, rtol=1e-4)
    assert int(steps) == 3


@pytest.mark.parametrize("name", CASES)
def test_log_probs_and_values_of_the_same_rollout_agree(name: str):
    """Log-probabilities and values of the same steps."""
    deep, rollout = deep_rollout(CASES[name])
    expected = as_samples(deep.samples(rollout))
    fused = build_learner(spec_of(CASES[name], "jax"))
    assert isinstance(fused, Ppo)
    policy = Policy(weights_of(deep.net), None)
    grids = (rollout.obs, rollout.action.astype(np.int32) if name == "discrete" else rollout.action)

    class Steps:
        observation, action = map(jnp.asarray, grids)
        mask = begun = None

    logp, value, _ = fused.evaluate_actions(policy, Steps)  # pyright: ignore[reportArgumentType]
    np.testing.assert_allclose(logp.reshape(-1), expected.logp, atol=1e-5)
    np.testing.assert_allclose(value.reshape(-1), expected.value, atol=1e-5)


def test_a_critic_of_standardised_returns_has_targets_on_its_own_scale():
    spec = spec_of(CASES["apart"], "jax")
    fused = build_learner(spec)
    assert isinstance(fused, Ppo)
    hyper, seen = fused.hyper(spec), []
    learn = fused.learn
    fused.learn = lambda state, samples, *rest: seen.append(samples) or learn(state, samples, *rest)  # pyright: ignore
    states = [fused.init(jax.random.key(5), fused.init_params(np.random.default_rng(5)), None)]
    for _ in range(2):
        states.append(fused.update(states[-1], hyper, None)[0])
    stats = [state.learner.value_stats for state in states]
    returns = [
        before.mean + np.sqrt(before.variance + 1e-8) * samples.value + samples.advantage
        for before, samples in zip(stats, seen, strict=False)
    ]
    for k, samples in enumerate(seen):
        together = np.concatenate(returns[: k + 1])
        np.testing.assert_allclose(stats[k + 1].mean, together.mean(), rtol=1e-4)
        np.testing.assert_allclose(samples.target, (returns[k] - together.mean()) / together.std(), atol=1e-3)


def test_a_scale_of_rewards_is_learnt_from_and_never_scored():
    targets, scores = [], []
    for scale in (1.0, 10.0):
        case = {"env": "Pendulum-v1", "algorithm": {"gamma": 0.0, "time_horizon": STEPS}, "net": {}}
        spec = spec_of(case, "jax")
        env = spec.env.model_copy(update={"reward_scale": scale})
        fused = build_learner(spec.model_copy(update={"env": env}))
        assert isinstance(fused, Ppo)
        state = fused.init(jax.random.key(5), fused.init_params(np.random.default_rng(5)), None)
        after, steps, truncations, _ = fused.rollout(state, jax.random.key(6))
        samples = fused.make_samples(state, steps, truncations, after.observation, fused.hyper(spec), None)[0]
        targets.append(samples.target)
        scores.append(steps.reward)
    np.testing.assert_allclose(targets[1], 10 * targets[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(*scores)


def test_advantages_agree():
    rng = np.random.default_rng(0)
    reward, value, ahead = rng.normal(size=(3, 50, 6)).astype(np.float32)
    terminated, truncated = rng.random((2, 50, 6)) < 0.1
    expected = advantages.gae(reward, value, ahead, terminated, truncated, 0.97, 0.9)
    found = losses.gae(*map(jnp.asarray, (reward, value, ahead, terminated, truncated)), 0.97, 0.9)  # pyright: ignore
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("env", "minibatch"),
    [("CartPole-v1", 128), pytest.param("Acrobot-v1", 256, marks=pytest.mark.slow), ("Pendulum-v1", 64)],
)
def test_the_first_minibatch_of_every_update_is_exactly_on_policy(env: str, minibatch: int):
    """Each action is estimates beside the very observation that it was chosen for: its ratio is 1, not nearly 1."""
    spec = Spec.model_validate(
        {
            "engine": "jax",
            "env": {"name": env, "num_envs": 8, "max_frame": 100_000, "normalize_obs": True},
            "agent": {"algorithm": {"name": "ppo", "time_horizon": 32, "minibatch_size": minibatch}},
        }
    )
    fused = build_learner(spec)
    assert isinstance(fused, Ppo)
    hyper = fused.hyper(spec)
    state = fused.init(jax.random.key(5), fused.init_params(np.random.default_rng(5)), None)
    first: list[np.ndarray] = []
    learn = fused.learn

    def spied(state: TrainState, samples: Samples, key: jax.Array, *rest: Any) -> Any:
        """The reports of the first minibatch, before anything moved, beside what is learnt."""
        from operant.engines.jax.shuffle import shuffled

        index = shuffled(key, fused.epochs, len(samples.logp))[0, : fused.size]
        batch = jax.tree.map(lambda x: x[index], samples)
        obs_stats = state.policy.obs_stats
        grads, report = jax.grad(fused.loss, has_aux=True)(state.policy.params, obs_stats, batch, hyper, rest[1], None)
        params, memory, means, taken = learn(state, samples, key, *rest)
        return params, memory, means, (taken, report, jax.tree.map(jnp.sum, grads))

    fused.learn = spied  # pyright: ignore[reportAttributeAccessIssue]
    update = jax.jit(lambda state: fused.update(state, hyper, None), compiler_options=compiler_options())
    for _ in range(6):
        state, report = update(state)
        first.append(np.asarray(report.gradient_steps[1]))  # pyright: ignore[reportIndexIssue]
        assert float(report.means["policy/kl"]) > 0, "later minibatches are not on-policy"
    kl, clipped = np.stack(first)[:, 3], np.stack(first)[:, 4]
    assert kl.tolist() == [0.0] * 6
    assert clipped.tolist() == [0.0] * 6


@pytest.mark.parametrize("engine", ["torch", "jax"])
def test_a_value_clip_that_nothing_reaches_teaches_the_same(engine: str):
    """One convention: with `clip_vloss` and without, the value loss is the same number, and so is all that follows."""

    def told(clip: float | None) -> dict[str, float]:
        case = {"env": "CartPole-v1", "algorithm": {"clip_vloss": clip}, "net": {}}
        spec = spec_of(case, engine, epochs=2)
        if engine == "torch":
            deep, rollout = deep_rollout(case)
            return deep.update(rollout)
        program = Program(build_learner(spec), 1)
        hyper = stacked([program.learner.hyper(spec)])
        found = program.chunk(program.start([Seeds(3)]), hyper, np.int32(2))[1]
        return {name: float(value.sum()) for name, value in found.means.items()}

    assert told(1e6) == pytest.approx(told(None), rel=1e-5)
