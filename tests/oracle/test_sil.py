"""Self-imitation: its losses and returns in float64, what is stored when, and what its steps do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from operant.engines.torch import losses
from operant.engines.torch.a2c import A2c
from operant.engines.torch.learners import build_learner
from operant.engines.torch.on_policy import Rollout
from operant.engines.torch.sil import OpenEpisodes, PpoSil, Sil, episode_returns
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

GAMMA = 0.9


def tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(array, np.float32))


def build_any(name: str, env: str = "CartPole-v1", memory: dict[str, Any] | None = None, **settings: Any) -> A2c:
    algorithm = {"name": name, "gamma": GAMMA, "training_frequency": 4, **settings}
    agent = {"algorithm": algorithm, "net": {"hidden": [8]}, "memory": memory}
    spec = Spec.model_validate({"env": {"name": env, "num_envs": 2, "max_frame": 4000}, "agent": agent})
    learner = build_learner(spec, Seeds(0), torch.device("cpu"))
    assert isinstance(learner, A2c)
    return learner


def build(env: str = "CartPole-v1", batch_size: int = 8, max_size: int = 64, **settings: Any) -> Sil:
    memory = {"name": "prioritised", "batch_size": batch_size, "max_size": max_size}
    learner = build_any("sil", env, memory, **settings)
    assert isinstance(learner, Sil)
    return learner


def flat(learner: A2c) -> np.ndarray:
    return np.concatenate([p.detach().numpy().ravel().copy() for p in learner.net.parameters()])


def rollout(rng: np.random.Generator, ends: dict[tuple[int, int], bool], steps: int = 4) -> Rollout:
    """Random play of CartPole's shape; `ends` are the places of ends, true where terminated."""
    terminated, truncated = np.zeros((steps, 2), bool), np.zeros((steps, 2), bool)
    for at, really in ends.items():
        (terminated if really else truncated)[at] = True
    obs = rng.normal(size=(steps, 2, 4)).astype(np.float32)
    finals = {at: rng.normal(size=4).astype(np.float32) for at in ends}
    reward = rng.normal(size=(steps, 2)).astype(np.float32)
    action = rng.integers(2, size=(steps, 2))
    return Rollout(obs, action, reward, terminated, truncated, obs[-1], finals, [])


def test_losses_match_numpy():
    rng = np.random.default_rng(0)
    logp, returns, value, weight = (rng.normal(size=50) for _ in range(4))
    weight = np.abs(weight)
    gain = np.maximum(returns - value, 0)
    policy = losses.imitation_policy_loss(tensor(logp), tensor(gain), tensor(weight))
    assert float(policy) == pytest.approx(np.mean(-logp * gain * weight), rel=1e-5)
    found = losses.imitation_value_loss(tensor(value), tensor(returns), tensor(weight))
    assert float(found) == pytest.approx(np.mean(0.5 * gain**2 * weight), rel=1e-5)
    plain = losses.imitation_value_loss(tensor(value), tensor(returns), None)
    assert float(plain) == pytest.approx(np.mean(0.5 * gain**2), rel=1e-5)


@pytest.mark.parametrize("after", [0.0, 2.5])
def test_returns_of_an_episode_match_numpy(after: float):
    reward = np.random.default_rng(0).normal(size=7)
    exact = [sum(GAMMA**k * r for k, r in enumerate(reward[t:])) + GAMMA ** (7 - t) * after for t in range(7)]
    np.testing.assert_allclose(episode_returns(reward.astype(np.float32), after, GAMMA), exact, rtol=1e-5)


def test_steps_wait_until_their_episode_is_over():
    learner, rng = build(), np.random.default_rng(0)
    first, second = rollout(rng, {}), rollout(rng, {(1, 0): True, (3, 0): True})
    learner.imitation.store(first)
    assert learner.imitation.replay.filled == 0
    learner.imitation.store(second)
    assert learner.imitation.replay.filled == 8
    rows = learner.imitation.replay.take(np.arange(8))
    whole = np.concatenate([first.reward[:, 0], second.reward[:2, 0]])
    np.testing.assert_allclose(rows["returns"][:6], episode_returns(whole, 0.0, GAMMA), rtol=1e-6)
    np.testing.assert_allclose(rows["returns"][6:], episode_returns(second.reward[2:, 0], 0.0, GAMMA), rtol=1e-6)
    np.testing.assert_array_equal(rows["obs"], np.concatenate([first.obs[:, 0], second.obs[:, 0]]))
    np.testing.assert_array_equal(rows["action"], np.concatenate([first.action[:, 0], second.action[:, 0]]))


def test_a_cut_episode_goes_on_with_the_critics_value_of_its_last_observation():
    learner, rng = build(), np.random.default_rng(0)
    cut = rollout(rng, {(3, 1): False})
    learner.imitation.store(cut)
    with torch.no_grad():
        after = float(learner.net(tensor(cut.final_obs[3, 1][None]))[1])
    found = learner.imitation.replay.take(np.arange(4))["returns"]
    np.testing.assert_allclose(found, episode_returns(cut.reward[:, 1], after, GAMMA), rtol=1e-5)


def test_of_an_episode_longer_than_the_memory_the_end_is_kept():
    learner = build(batch_size=4, max_size=5)
    played = rollout(np.random.default_rng(0), {(7, 0): True}, steps=8)
    learner.imitation.store(played)
    assert learner.imitation.replay.filled == 5
    np.testing.assert_array_equal(learner.imitation.replay.take(np.arange(5))["obs"], played.obs[3:, 0])


def test_a_step_descends_the_weighted_losses_and_sets_priorities():
    learner, rng = build(sil_policy_coef=0.7, sil_value_coef=0.3), np.random.default_rng(1)
    learner.imitation.store(rollout(rng, {(step, env): True for step in range(4) for env in range(2)}))
    replay, index = learner.imitation.replay, np.arange(8)
    rows, weight = replay.take(index), np.abs(rng.normal(size=8)).astype(np.float32)
    output, value = learner.net(tensor(rows["obs"]))
    logp = torch.log_softmax(output, -1)[torch.arange(8), torch.from_numpy(rows["action"])]
    gain = (tensor(rows["returns"]) - value).clamp(min=0)
    assert 0 < int((gain > 0).sum()) < 8
    each = 0.7 * -logp * gain.detach() + 0.3 * 0.5 * gain.square()
    exact = torch.autograd.grad(
        (each * tensor(weight)).mean(), [p for group in learner.net.parameter_groups() for p in group]
    )
    found: list[torch.Tensor] = []
    learner.optimizer.combine = lambda grad: found.append(grad.clone())
    learner.imitation.gradient_step(index, weight)
    np.testing.assert_allclose(found[0].numpy(), torch.cat([g.ravel() for g in exact]).numpy(), atol=1e-6)
    assert replay.priorities is not None
    leaves = replay.priorities.state()["leaves"].ravel()[:8]
    np.testing.assert_allclose(leaves, (gain.detach().numpy().astype(np.float64) + 1e-6) ** 0.6, rtol=1e-3)


def test_where_every_return_was_expected_nothing_is_imitated():
    learner = build()
    learner.imitation.store(rollout(np.random.default_rng(0), {(3, 0): True}))
    learner.imitation.replay._arrays["returns"][:] = -100.0
    before = flat(learner)
    report = learner.imitation.gradient_step(np.arange(4), None)
    np.testing.assert_array_equal(flat(learner), before)
    assert report.tolist() == [0.0, 0.0, 0.0]


def test_before_the_memory_holds_a_batch_it_is_a2c():
    imitating, plain = build(batch_size=1000, max_size=1000), build_any("a2c")
    while plain.tracker.frames < 400:
        plain.iterate()
        imitating.iterate()
    assert imitating.imitation.replay.filled > 0
    np.testing.assert_array_equal(flat(imitating), flat(plain))


def test_what_waits_and_what_is_kept_survive_a_restart(tmp_path: Path):
    learner, other = (build(env="operant/Masked-v0") for _ in range(2))
    while learner.tracker.frames < 200:
        learner.iterate()
    learner.snapshot.write(tmp_path)
    other.snapshot.read(tmp_path)
    for _ in range(10):
        learner.iterate()
        other.iterate()
    np.testing.assert_array_equal(flat(other), flat(learner))


def test_open_episodes_keep_their_environments():
    empty = {"x": np.zeros((0, 2), np.float32)}
    waiting, other = OpenEpisodes(3, empty), OpenEpisodes(3, empty)
    waiting.extend(0, {"x": np.ones((2, 2), np.float32)})
    waiting.extend(2, {"x": np.full((1, 2), 3, np.float32)})
    waiting.extend(0, {"x": np.full((1, 2), 2, np.float32)})
    other.restore(waiting.state())
    assert [len(other.close(env)["x"]) for env in range(3)] == [3, 0, 1]
    np.testing.assert_array_equal(waiting.close(0)["x"][:, 0], [1, 1, 2])
    assert len(waiting.close(0)["x"]) == 0


def test_ppo_imitates_as_well():
    agent = {
        "algorithm": {"name": "ppo_sil", "time_horizon": 32, "minibatch_size": 32, "training_epoch": 2, "sil_iter": 3},
        "memory": {"name": "prioritised", "batch_size": 16},
    }
    spec = Spec.model_validate({"env": {"num_envs": 4, "max_frame": 1280}, "agent": agent})
    learner = build_learner(spec, Seeds(0), torch.device("cpu"))
    assert isinstance(learner, PpoSil)
    while learner.tracker.frames < 1280:
        learner.iterate()
    assert learner.tracker.updates == learner.update_counts().updates == 10 * (2 * 4 + 3)
    assert {"loss/sil_policy", "loss/sil_value", "sil/share"} <= learner.tracker.flush().keys()
