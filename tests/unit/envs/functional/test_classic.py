"""Classic control in JAX and in Gymnasium, side by side: the same states and actions, step for step."""

from __future__ import annotations

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from operant.envs.functional.classic import Body, Classic
from operant.envs.functional.env import Discrete
from operant.envs.functional.find import find_functional
from operant.spec.settings.sections import EnvSpec

NAMES = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1")
COPIES, STEPS = 4, 1200


def classic(name: str, **settings: object) -> Classic:
    found = find_functional(EnvSpec(name=name, **settings))  # pyright: ignore[reportArgumentType]
    assert isinstance(found, Classic)
    return found


def random_actions(env: Classic, rng: np.random.Generator) -> np.ndarray:
    if isinstance(env.actions, Discrete):
        return rng.integers(env.actions.n, size=(STEPS, COPIES)).astype(np.int32)
    # Beyond the bounds too: both must clip alike.
    return rng.uniform(-3, 3, (STEPS, COPIES, *env.actions.shape)).astype(np.float32)


def played(env: Classic, actions: np.ndarray) -> dict[str, np.ndarray]:
    """A rollout in JAX: the states before each step, what came of it, and what to act on next."""

    def step(states: Body, given: tuple[jax.Array, jax.Array]):
        action, keys = given
        after, observation, outcome = env.advance(states, action, keys)
        return after, {"at": jnp.stack(states.at, -1), "time": states.time, "next": observation, **outcome._asdict()}

    @jax.jit
    def rollout(key: jax.Array):
        states, _ = jax.vmap(env.reset)(jax.random.split(key, COPIES))
        keys = jax.random.split(jax.random.fold_in(key, 1), (STEPS, COPIES))
        return jax.lax.scan(step, states, (jnp.asarray(actions), keys))[1]

    found = rollout(jax.random.key(3))
    return {name: np.asarray(value) for name, value in found.items() if name != "metrics"}


@pytest.mark.parametrize("name", NAMES)
def test_every_step_equals_gymnasiums(name: str):
    env, peer = classic(name), gym.make(name).unwrapped
    limit = gym.spec(name).max_episode_steps
    actions = random_actions(env, np.random.default_rng(5))
    mine = played(env, actions)
    assert env.limit == limit
    for t in range(STEPS):
        for i in range(COPIES):
            peer.reset(seed=0)
            peer.state = mine["at"][t, i].astype(np.float64)  # pyright: ignore[reportAttributeAccessIssue]
            action = actions[t, i] if actions.ndim > 2 else int(actions[t, i])
            observation, reward, terminated, _, _ = peer.step(action)
            np.testing.assert_allclose(mine["observation"][t, i], observation, rtol=1e-4, atol=2e-5)
            assert mine["reward"][t, i] == pytest.approx(reward, rel=1e-5, abs=1e-5)
            assert mine["terminated"][t, i] == terminated
    assert np.array_equal(mine["truncated"], mine["time"] + 1 >= limit)
    over = mine["terminated"] | mine["truncated"]
    assert over.any()
    assert np.array_equal(mine["time"][1:][over[:-1]], np.zeros(over[:-1].sum()))
    assert np.array_equal(mine["next"][~over], mine["observation"][~over])
    assert not np.array_equal(mine["next"][over], mine["observation"][over])


@pytest.mark.parametrize("name", NAMES)
def test_episodes_begin_where_gymnasiums_do(name: str):
    env, peer = classic(name), gym.make(name)
    mine = np.asarray(jax.vmap(env.reset)(jax.random.split(jax.random.key(0), 2000))[1])
    theirs = np.stack([peer.reset(seed=k)[0] for k in range(500)])
    np.testing.assert_allclose(mine.mean(0), theirs.mean(0), atol=0.1)
    np.testing.assert_allclose(mine.std(0), theirs.std(0), atol=0.05)
    assert (mine >= theirs.min(0) - 0.02).all()
    assert (mine <= theirs.max(0) + 0.02).all()


def test_reaching_the_goal_ends_the_climb():
    for name, at in (("MountainCar-v0", 0.49), ("MountainCarContinuous-v0", 0.44)):
        env = classic(name)
        action = jnp.int32(2) if name == "MountainCar-v0" else jnp.ones(1)
        state = Body((jnp.float32(at), jnp.float32(0.05)), jnp.int32(7))
        _, outcome = env.step(state, action, jax.random.key(0))
        assert bool(outcome.terminated)
        assert float(outcome.reward) == pytest.approx(-1.0 if name == "MountainCar-v0" else 99.9)


def test_settings_of_a_spec():
    assert classic("CartPole-v1", max_t=50).limit == 50
    assert classic("CartPole-v0").limit == 200
    env = classic("CartPole-v1", kwargs={"sutton_barto_reward": True})
    _, outcome = env.step(Body(tuple(jnp.zeros(4)), jnp.int32(0)), jnp.int32(0), jax.random.key(0))
    assert float(outcome.reward) == 0.0
    assert hash(classic("Pendulum-v1")) == hash(classic("Pendulum-v1"))
