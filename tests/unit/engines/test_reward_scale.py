"""The scale of rewards, which is a problem's own and arbitrary, must not reach what a learner computes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from pydantic import ValidationError

from operant.engines.torch.learners import build_learner
from operant.engines.torch.normalize import RewardNormalizer
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.algorithms import with_learner

NAME = "test/Paid-v0"
JUMP = 200  # steps of an environment after which `then` multiplies its rewards
LARGEST = 1000.0  # no reported number may be larger; before the statistics had a start, losses were 1e6 and more
REPLAYING = {"training_start": 256, "training_frequency": 4, "training_iter": 1}
SETTINGS: dict[str, dict[str, Any]] = {
    "ppo": {"time_horizon": 32, "minibatch_size": 32},
    "ppo_sil": {"time_horizon": 32, "minibatch_size": 32},
    "a2c": {"training_frequency": 8},
    "sil": {"training_frequency": 8},
    "sarsa": {"training_frequency": 8},
    "dqn": REPLAYING,
    "sac": REPLAYING,
    "td3": REPLAYING,
    "crossq": {**REPLAYING, "renorm_warm_up": 50},
}
DISCRETE = {"a2c", "ppo", "sil", "ppo_sil", "sarsa", "dqn"}


class Paid(gym.Env):
    """A walk whose steps are paid by `scale`, or with `equal` all the same; after `JUMP` steps `then` times as much."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float32)
    steps = 0

    def __init__(self, discrete: bool, scale: float = 1.0, then: float = 1.0, equal: bool = False) -> None:
        self.action_space = Discrete(2) if discrete else Box(-1, 1, (1,), np.float32)
        self.scale, self.then, self.equal = scale, then, equal

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.at, self.time = self.np_random.normal(size=2).astype(np.float32), 0
        return self.at, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        self.steps += 1
        self.at = (0.9 * self.at + self.np_random.normal(size=2)).astype(np.float32)
        paid = 1.0 if self.equal else -1.0 - float(np.round(abs(self.at[0]), 3)) - 0.125 * float(np.sum(action))
        paid *= self.scale * (self.then if self.steps > JUMP else 1.0)
        return self.at, paid, self.time >= 20, False, {}


@pytest.fixture(autouse=True)
def paid():
    gym.register(NAME, entry_point=lambda **kwargs: Paid(**kwargs))
    yield
    del gym.registry[NAME]


def spec_of(algorithm: str, num_envs: int, **kwargs: Any) -> Spec:
    env = {
        "name": NAME,
        "num_envs": num_envs,
        "max_frame": 4000,
        "normalize_reward": True,
        "kwargs": {"discrete": algorithm in DISCRETE, **kwargs},
    }
    agent = {"algorithm": {"name": algorithm, **SETTINGS.get(algorithm, {})}, "net": {"hidden": [16]}}
    return Spec.model_validate({"env": env, "agent": agent, "meta": {"max_session": 1}})


def reports(algorithm: str, num_envs: int, frames: int, **kwargs: Any) -> dict[str, float]:
    """The largest sizes of what a learner reports of its losses, values and gradients."""
    torch.set_num_threads(1)
    learner = build_learner(spec_of(algorithm, num_envs, **kwargs), Seeds(3), torch.device("cpu"))
    found: dict[str, float] = {}
    while learner.tracker.frames < frames:
        learner.iterate()
        for name, value in learner.tracker.flush().items():
            if name.startswith(("loss", "q/", "optim/grad")) and value is not None:
                found[name] = max(found.get(name, 0.0), abs(value) if math.isfinite(value) else math.inf)
    assert found, "nothing was learnt"
    return found


def test_every_algorithm_that_normalises_rewards_is_here():
    takes = set()
    for name in with_learner("torch"):
        try:
            Spec.model_validate({"env": {"normalize_reward": True}, "agent": {"algorithm": {"name": name}}})
        except ValidationError:
            continue
        takes.add(name)
    assert takes == set(SETTINGS)


@pytest.mark.parametrize("algorithm", SETTINGS)
@pytest.mark.parametrize("num_envs", [1, 4])
def test_another_scale_of_all_rewards_changes_nothing_that_is_learnt(algorithm: str, num_envs: int):
    """By a power of two, so that not even a rounding may differ."""
    small, large = (reports(algorithm, num_envs, 320, scale=scale) for scale in (2.0**-20, 2.0**20))
    assert small == large
    assert max(small.values()) < LARGEST


@pytest.mark.parametrize("algorithm", SETTINGS)
@pytest.mark.parametrize("kwargs", [{"equal": True}, {"then": 1e4}, {"then": 1e-4}], ids=["equal", "larger", "smaller"])
def test_what_one_environment_teaches_stays_bounded(algorithm: str, kwargs: dict[str, Any]):
    """Equal rewards from the first on, and rewards that are suddenly paid in another currency."""
    assert max(reports(algorithm, 1, 2 * JUMP, **kwargs).values()) < LARGEST


@pytest.mark.parametrize("num", [1, 4, 512])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_equal_first_rewards_are_two(num: int, scale: float):
    """By hand: as many returns of 0 as of r have the deviation r / 2."""
    normalizer = RewardNormalizer(num, True, 0.99, None)
    reward = np.full(num, scale)
    normalizer.update(reward, np.zeros(num, bool))
    np.testing.assert_allclose(normalizer.scaled(reward), 2.0, rtol=1e-6)
    np.testing.assert_allclose(normalizer.scaled(-reward), -2.0, rtol=1e-6)


def test_rewards_of_zero_stay_zero():
    normalizer = RewardNormalizer(2, True, 0.99, None)
    nothing = np.zeros(2, np.float32)
    normalizer.update(nothing, np.zeros(2, bool))
    assert normalizer.scaled(nothing).tolist() == [0.0, 0.0]


def test_in_the_long_run_it_is_gymnasiums_wrapper():
    """The statistics of both come to the same; only their beginnings differ."""

    @dataclass
    class Drawn(gym.Env):
        observation_space = action_space = Discrete(1)

        def __post_init__(self) -> None:
            self.rng, self.last = np.random.default_rng(0), 0.0

        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
            return 0, {}

        def step(self, action: Any):
            self.last = float(self.rng.normal(3.0, 5.0))
            return 0, self.last, bool(self.rng.random() < 0.02), False, {}

    inner = Drawn()
    wrapper, ours = gym.wrappers.NormalizeReward(inner, gamma=0.97), RewardNormalizer(1, True, 0.97, None)
    wrapper.reset()
    theirs = mine = 0.0
    for _ in range(20_000):
        _, theirs, over, _, _ = wrapper.step(0)
        raw = np.array([inner.last])
        ours.update(raw, np.array([over]))
        mine = float(ours.scaled(raw)[0])
        if over:
            wrapper.reset()
    assert mine == pytest.approx(float(theirs), rel=5e-3)


def fused_reports(num_envs: int, scale: float) -> dict[str, float]:
    """The same of PPO in one compiled program, on a pendulum that is paid by `scale`."""
    pytest.importorskip("jax")
    from operant.engines.jax.learners import learner_class
    from operant.engines.jax.program import Program, stacked
    from operant.envs.functional.classic import Pendulum

    class PaidPendulum(Pendulum):
        def move(self, at: Any, action: Any) -> Any:
            after, reward, over = super().move(at, action)
            return after, reward * scale, over

    env = {"name": "Pendulum-v1", "num_envs": num_envs, "max_frame": 4000, "normalize_reward": True}
    agent = {"algorithm": {"name": "ppo", **SETTINGS["ppo"]}, "net": {"hidden": [8]}}
    spec = Spec.model_validate({"engine": "jax", "env": env, "agent": agent, "meta": {"log_frequency": 512}})
    learner = learner_class("ppo")(spec, PaidPendulum())
    program = Program(learner, 1)
    _, report = program.chunk(program.start([Seeds(3)]), stacked([learner.hyper(spec)]), np.int32(2))
    return {name: float(value.sum()) for name, value in report.means.items()}


@pytest.mark.parametrize("num_envs", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_another_scale_changes_nothing_in_the_fused_engine(num_envs: int):
    small, large = (fused_reports(num_envs, scale) for scale in (2.0**-20, 2.0**20))
    assert small == large
    assert max(map(abs, small.values())) < LARGEST


def test_both_engines_give_the_same_rewards():
    """Rollout after rollout, from the first on: float64 step by step, and float32 all at once."""
    jax = pytest.importorskip("jax")
    from operant.engines.jax import normalize

    rng, num, steps, array = np.random.default_rng(0), 3, 16, jax.numpy.asarray
    deep, moments = RewardNormalizer(num, True, 0.95, None), normalize.init_return_stats(num)
    running = jax.numpy.zeros(num)
    for size in (1.0, 1.0, 5000.0, 1.0):
        reward = (size * rng.normal(2.0, 1.0, (steps, num))).astype(np.float32)
        over = rng.random((steps, num)) < 0.1
        for t in range(steps):
            deep.update(reward[t], over[t])
        running, returns = normalize.discounted_returns(running, array(reward), array(over), array(0.95))
        moments = normalize.update(moments, returns.reshape(-1), None)
        found = normalize.clip_rewards(normalize.normalize_rewards(moments, array(reward)), True, None)
        np.testing.assert_allclose(found, deep.scaled(reward), rtol=1e-4)


def test_a_replay_is_measured_by_the_statistics_of_now():
    """Rewards of one size are one size in every batch, however early they were played."""
    learner = build_learner(spec_of("dqn", 1, equal=True), Seeds(3), torch.device("cpu"))
    while learner.tracker.frames < 400:
        learner.iterate()
    batch = learner.replay.sample(np.random.default_rng(0), 0.0)  # pyright: ignore[reportAttributeAccessIssue]
    assert set(batch.reward.tolist()) == {1.0}
    scaled = learner.rewards.scaled(batch.reward)  # pyright: ignore[reportAttributeAccessIssue]
    assert len(set(scaled.tolist())) == 1
    assert 0 < scaled[0] < 1
