"""Vector environments: autoreset, true successors, replayable state, action mapping."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from operant.envs.check import check_env
from operant.envs.vector.actions import ActionMap
from operant.envs.vector.autoreset import AutoresetVectorEnv
from operant.errors import RunError, UsageError
from operant.run.seeding import Seeds
from operant.spec.settings.sections import EnvSpec


def vector(name="CartPole-v1", num=3, **spec):
    seeds = Seeds(5)
    return AutoresetVectorEnv(EnvSpec(name=name, **spec), num, lambda i, k: seeds.integer("env", i, k))


def random_actions(env, rng):
    return rng.integers(2, size=env.num) if env.actions.discrete else rng.uniform(-1, 1, (env.num, env.actions.size))


def test_transitions_never_span_two_episodes():
    env, rng, seen = vector(), np.random.default_rng(0), 0
    for _ in range(300):
        before = env.obs.copy()
        step = env.step(random_actions(env, rng))
        for over in step.ended:
            seen += 1
            # CartPole's reset is within 0.05 of the origin and a fallen pole is not: the two must not be mixed up.
            assert np.abs(step.obs[over.index]).max() <= 0.05
            assert np.abs(step.next_obs[over.index]).max() > 0.1
        ended = {over.index for over in step.ended}
        for i in set(range(env.num)) - ended:
            assert np.array_equal(step.obs[i], step.next_obs[i])
        assert np.abs(step.next_obs - before).max() < 3
    assert seen > 20


def test_an_environment_that_waits_stays_as_it_is():
    env, rng = vector(), np.random.default_rng(4)
    playing = np.array([True, False, True])
    waiting = env.obs[1].copy()
    for _ in range(60):
        step = env.step(random_actions(env, rng), playing)
        assert step.reward.tolist() == [1.0, 0.0, 1.0]
        assert not (step.terminated | step.truncated)[1]
        assert np.array_equal(step.obs[1], waiting)
    assert env.state()["actions/1"].shape == (0,)


def test_episode_scores_match_gymnasium_alone():
    """Each recorded episode is what Gymnasium gives for that seed and those actions."""
    env, rng = vector(num=1), np.random.default_rng(1)
    actions = []
    while True:
        actions.append(random_actions(env, rng))
        ended = env.step(actions[-1]).ended
        if ended:
            break
    alone = gym.make("CartPole-v1")
    alone.reset(seed=ended[0].seed)
    rewards = [float(alone.step(int(a[0]))[1]) for a in actions]
    assert sum(rewards) == ended[0].score
    assert len(rewards) == ended[0].length


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "Acrobot-v1", "MountainCarContinuous-v0"])
def test_a_restored_environment_continues_exactly(name):
    env, rng = vector(name), np.random.default_rng(2)
    for _ in range(57):
        env.step(random_actions(env, rng))
    state, later = env.state(), vector(name)
    later.restore(state)
    for _ in range(60):
        actions = random_actions(env, rng)
        a, b = env.step(actions), later.step(actions)
        assert np.array_equal(a.obs, b.obs)
        assert np.array_equal(a.reward, b.reward)
        assert a.ended == b.ended


def test_time_limit_is_truncation_not_termination():
    env = vector("Pendulum-v1", num=1, max_t=5)
    steps = [env.step(np.zeros((1, 1))) for _ in range(5)]
    assert steps[-1].truncated.tolist() == [True]
    assert steps[-1].terminated.tolist() == [False]
    assert not steps[-1].ended[0].terminated


class Forgetful(gym.Env):
    """An environment that ignores its seed."""

    observation_space = Box(-1, 1, (1,), np.float32)
    action_space = Discrete(2)
    calls = 0

    def reset(self, *, seed=None, options=None):
        Forgetful.calls += 1
        return np.array([Forgetful.calls * 0.01], np.float32), {}

    def step(self, action):
        return np.array([Forgetful.calls * 0.01], np.float32), 0.0, False, False, {}


def test_an_environment_that_ignores_its_seed_is_found_out():
    if "test/Forgetful-v0" not in gym.registry:
        gym.register("test/Forgetful-v0", entry_point=lambda **_: Forgetful(), max_episode_steps=50)
    env = vector("test/Forgetful-v0", num=1)
    env.step(np.zeros(1, int))
    with pytest.raises(RunError, match="did not return to the checkpoint's state"):
        vector("test/Forgetful-v0", num=1).restore(env.state())


def test_bounded_actions_are_stretched_and_clipped():
    actions = ActionMap(Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 10.0], np.float32)))
    assert actions.to_env(np.array([[0.5, 1.0], [-9.0, -1.0]]))[0].tolist() == [1.0, 10.0]
    assert actions.to_env(np.array([[0.5, 1.0], [-9.0, -1.0]]))[1].tolist() == [-2.0, 0.0]


def test_unbounded_actions_pass_as_they_are():
    actions = ActionMap(Box(-np.inf, np.inf, (1,), np.float32))
    assert actions.to_env(np.array([[37.5]]))[0].tolist() == [37.5]


def test_discrete_actions_count_from_the_space_start():
    assert ActionMap(Discrete(3, start=5)).to_env(np.array([0, 2])) == [5, 7]


def test_structured_observations_are_flattened():
    env = vector("FrozenLake-v1", num=2)
    assert env.obs.shape == (2, 16)
    assert env.obs.sum() == 2


def test_unknown_environment_names_the_nearest():
    with pytest.raises(UsageError, match="no environment is called 'CartPol-v1'") as problem:
        check_env(EnvSpec(name="CartPol-v1"))
    assert "CartPole-v1" in str(problem.value)


def test_wrong_constructor_argument_is_a_usage_error():
    with pytest.raises(UsageError, match="does not accept"):
        check_env(EnvSpec(name="CartPole-v1", kwargs={"wind": 3}))
