"""MuJoCo's tasks in MJX are those of Gymnasium; skipped where MJX is absent. Names and errors are tried in `test_find`.

A state is put into both simulators, and the same actions are played in both. Theirs differ by single precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from operant.envs.functional.find import MJX, find_functional, in_gymnasium
from operant.envs.gym import make_env
from operant.envs.spaces import spaces_of
from operant.spec.settings.sections import EnvSpec

pytest.importorskip("mujoco.mjx")
pytestmark = pytest.mark.slow
NAMES = ["HalfCheetah-v5", "Hopper-v5", "InvertedDoublePendulum-v5", "Reacher-v5"]
STEPS = 5


def made(name: str, **settings: Any) -> Any:
    return find_functional(EnvSpec(name=f"{MJX}{name}", **settings))


def test_a_policy_sees_and_does_the_same_in_both():
    from operant.envs.functional.mjx_envs import names

    for name in names():
        compiled = EnvSpec(name=f"{MJX}{name}")
        assert in_gymnasium(compiled).name == name
        assert spaces_of(in_gymnasium(compiled), "jax").difference(spaces_of(compiled, "jax")) is None
        recipe = make_env(EnvSpec(name=name)).spec
        assert recipe is not None
        assert made(name).limit == recipe.max_episode_steps


@pytest.mark.parametrize("name", NAMES)
def test_observations_rewards_and_endings_are_those_of_gymnasium(name: str):
    import jax
    import jax.numpy as jnp

    env, peer, rng = made(name), make_env(EnvSpec(name=name)), np.random.default_rng(4)
    peer.reset(seed=7)
    inner: Any = peer.unwrapped
    body = env.at(inner.data.qpos, inner.data.qvel)
    assert np.allclose(env.observe(body), inner._get_obs(), atol=1e-5)
    step = jax.jit(env.step)
    for _ in range(STEPS):
        action = rng.uniform(env.actions.low, env.actions.high, env.actions.shape).astype(np.float32)
        body, outcome = step(body, jnp.asarray(action), jax.random.key(0))
        seen, reward, terminated, *_ = peer.step(action)
        assert np.allclose(outcome.observation, seen, rtol=1e-3, atol=5e-3)
        assert np.isclose(float(outcome.reward), float(reward), rtol=1e-3, atol=5e-3)
        assert bool(outcome.terminated) == terminated
