"""The scales of returns against float64 numpy: symlog, running moments and the running percentile range."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from operant.engines.torch import losses
from operant.engines.torch.advantages import ReturnScale, symexp, symlog
from operant.engines.torch.learners import build_learner
from operant.engines.torch.on_policy import OnPolicyLearner, Rollout, collect
from operant.run.seeding import Seeds
from operant.spec.schema import Spec


def by_hand(x: float) -> float:
    return float(np.log(x + 1) if x >= 0 else -np.log(1 - x))


def test_symlog_is_odd_and_symexp_its_inverse():
    x = np.array([-1e6, -3.0, -1e-4, 0.0, 1e-4, 1.0, 250.0, 1e6])
    np.testing.assert_allclose(symlog(x), [by_hand(each) for each in x], rtol=1e-12)
    np.testing.assert_allclose(symexp(symlog(x)), x, rtol=1e-9)
    np.testing.assert_allclose(symlog(-x), -symlog(x))


def test_without_options_outputs_are_returns_and_nothing_is_kept():
    scale, returns = ReturnScale(), np.array([[3.0, -700.0]], np.float32)
    scale.update(returns)
    assert scale.output_of(returns) is returns
    assert scale.value_of(returns) is returns
    assert scale.spread == 1.0
    assert scale.state() == {}


@pytest.mark.parametrize("squeeze", [False, True])
def test_outputs_are_standardised_by_all_returns_seen(squeeze: bool):
    rng = np.random.default_rng(0)
    batches = [rng.normal(50, 20, (16, 4)).astype(np.float32) for _ in range(5)]
    scale = ReturnScale(squeeze=squeeze, standardize=True)
    for batch in batches:
        scale.update(batch)
    seen = np.concatenate(batches).astype(np.float64)
    seen = symlog(seen) if squeeze else seen
    expected = (seen[:16] - seen.mean()) / seen.std()
    np.testing.assert_allclose(scale.output_of(batches[0]), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scale.value_of(scale.output_of(batches[0])), batches[0], rtol=1e-4)
    assert scale.output_of(batches[0]).dtype == np.float32


def test_spread_is_a_debiased_running_mean_of_the_percentile_range():
    rng = np.random.default_rng(1)
    batches = [rng.normal(0, 10 * (k + 1), (32, 4)) for k in range(6)]
    scale = ReturnScale(spread=True)
    for batch in batches:
        scale.update(batch)
    ranges = [np.subtract(*np.percentile(batch, [95, 5])) for batch in batches]
    weights = 0.99 ** np.arange(len(batches))[::-1]
    assert scale.spread == pytest.approx(np.average(ranges, weights=weights), rel=1e-9)


def test_a_small_spread_does_not_amplify_advantages():
    scale = ReturnScale(spread=True)
    scale.update(np.linspace(0, 0.1, 64))
    assert scale.spread == 1.0


def test_statistics_survive_a_restart():
    first, second = (ReturnScale(squeeze=True, standardize=True, spread=True) for _ in range(2))
    first.update(np.random.default_rng(2).normal(5, 40, (8, 2)))
    second.restore(first.state())
    returns = np.array([1.0, -30.0])
    np.testing.assert_array_equal(second.output_of(returns), first.output_of(returns))
    assert second.spread == first.spread > 1


def played(agent: dict, steps: int) -> tuple[OnPolicyLearner, Rollout]:
    spec = Spec.model_validate({"env": {"name": "Pendulum-v1", "num_envs": 2}, "agent": agent})
    learner = build_learner(spec, Seeds(3), torch.device("cpu"))
    assert isinstance(learner, OnPolicyLearner)
    learner.iterate()
    return learner, collect(learner.vector, learner.actor, learner.rewards, np.random.default_rng(0), steps)


def advantages_by_hand(learner: OnPolicyLearner, rollout: Rollout) -> tuple[np.ndarray, np.ndarray]:
    """Advantages by the definition of GAE (gamma 0.9, lambda 0.8), and the values, in float64."""
    with torch.no_grad():
        obs = np.concatenate([rollout.obs, rollout.last_obs[None]])
        outputs = learner.net(torch.from_numpy(obs))[1].numpy().astype(np.float64)
    value = learner.returns.value_of(outputs)
    delta = rollout.reward + 0.9 * value[1:] - value[:-1]
    steps = len(delta)
    advantage = [sum((0.9 * 0.8) ** k * delta[t + k] for k in range(steps - t)) for t in range(steps)]
    return np.array(advantage), value[:-1]


def test_ppo_measures_advantages_in_returns_and_teaches_the_critic_in_its_own_scale():
    options = {"normalize_advantages": "percentile", "symlog": True, "normalize_v_targets": True}
    algorithm = {"name": "ppo", "gamma": 0.9, "lam": 0.8, "time_horizon": 16, "minibatch_size": 8, **options}
    learner, rollout = played({"algorithm": algorithm}, 16)
    advantage, value = advantages_by_hand(learner, rollout)
    samples = learner.samples(rollout)  # pyright: ignore[reportAttributeAccessIssue]
    assert learner.returns.spread > 1
    expected = advantage.ravel() / learner.returns.spread
    np.testing.assert_allclose(samples.advantage.numpy(), expected, rtol=1e-3, atol=1e-4)
    targets = learner.returns.output_of((advantage + value).ravel())
    np.testing.assert_allclose(samples.target.numpy(), targets, rtol=1e-3, atol=1e-4)


def test_a2c_descends_the_error_of_standardised_values():
    algorithm = {"name": "a2c", "gamma": 0.9, "lam": 0.8, "training_frequency": 16, "normalize_v_targets": True}
    learner, rollout = played({"algorithm": algorithm}, 16)
    advantage, value = advantages_by_hand(learner, rollout)
    with torch.no_grad():
        output = learner.net(torch.from_numpy(rollout.obs))[1]
    found = learner.update(rollout)["loss/value"]
    target = torch.from_numpy(learner.returns.output_of((advantage + value).astype(np.float32)))
    assert found == pytest.approx(float(losses.value_loss(output, target)), rel=1e-3)


@pytest.mark.parametrize(("given", "meant"), [(True, "standardise"), (False, "none"), ("percentile", "percentile")])
def test_a_switch_of_an_older_spec_keeps_its_meaning(given: object, meant: str):
    spec = Spec.model_validate({"agent": {"algorithm": {"name": "ppo", "normalize_advantages": given}}})
    assert spec.model_dump(mode="json")["agent"]["algorithm"]["normalize_advantages"] == meant
