"""Box2D and MuJoCo: seed and actions decide everything, and nothing is left in the working directory."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from operant.envs.gym import make_env
from operant.envs.vector.autoreset import AutoresetVectorEnv
from operant.run.seeding import Seeds
from operant.spec.settings.sections import EnvSpec

box2d = pytest.mark.skipif(find_spec("Box2D") is None, reason="Box2D is not installed: see docs/howto/install.md")
mujoco = pytest.mark.skipif(find_spec("mujoco") is None, reason="mujoco is not installed: see docs/howto/install.md")
FAMILIES = [
    pytest.param("LunarLander-v3", {}, marks=box2d),
    pytest.param("LunarLander-v3", {"continuous": True}, marks=box2d),
    pytest.param("BipedalWalker-v3", {}, marks=box2d),
    pytest.param("HalfCheetah-v5", {}, marks=mujoco),
    pytest.param("Hopper-v5", {}, marks=mujoco),
    pytest.param("Humanoid-v5", {}, marks=mujoco),
]


def vector(name: str, kwargs: dict) -> AutoresetVectorEnv:
    seeds = Seeds(5)
    return AutoresetVectorEnv(EnvSpec(name=name, kwargs=kwargs), 2, lambda i, k: seeds.integer("env", i, k))


def random_actions(env: AutoresetVectorEnv, rng: np.random.Generator) -> np.ndarray:
    if env.actions.discrete:
        return rng.integers(env.actions.size, size=env.num)
    return rng.uniform(-1, 1, (env.num, env.actions.size))


@pytest.mark.parametrize(("name", "kwargs"), FAMILIES)
@pytest.mark.parametrize("played", [40, 230])
def test_a_restored_environment_continues_exactly(name: str, kwargs: dict, played: int):
    """The new environment has no past, the old one has: contacts and solver caches must not carry it over."""
    env, rng = vector(name, kwargs), np.random.default_rng(2)
    for _ in range(played):
        env.step(random_actions(env, rng))
    later = vector(name, kwargs)
    later.restore(env.state())
    for _ in range(150):
        actions = random_actions(env, rng)
        a, b = env.step(actions), later.step(actions)
        assert np.array_equal(a.next_obs, b.next_obs)
        assert np.array_equal(a.obs, b.obs)
        assert np.array_equal(a.reward, b.reward)
        assert a.ended == b.ended


@box2d
def test_a_bipedal_walkers_episode_does_not_depend_on_those_before():
    env, rng = make_env(EnvSpec(name="BipedalWalker-v3")), np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (60, 4)).astype(np.float32)

    def play(seed: int) -> np.ndarray:
        env.reset(seed=seed)
        return np.stack([env.step(action)[0] for action in actions])

    first = play(1)
    play(2)
    assert np.array_equal(play(1), first)


@mujoco
def test_mujoco_leaves_no_log_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd):
    monkeypatch.chdir(tmp_path)
    make_env(EnvSpec(name="HalfCheetah-v5")).close()
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr().err == ""
