from __future__ import annotations

import jax
import numpy as np
import pytest

from operant.envs.builtin import BUILTIN
from operant.envs.environment import Traits
from operant.envs.functional.env import Continuous, Discrete
from operant.envs.functional.find import find_functional, in_gymnasium, steps_on_host, traits_of
from operant.envs.probe import PROBES, Probe
from operant.envs.registry import declaration
from operant.errors import UsageError
from operant.install import install_extra, install_package
from operant.spec.settings.sections import EnvSpec


def remedy(**settings: object) -> str:
    with pytest.raises(UsageError) as told:
        find_functional(EnvSpec(**settings))  # pyright: ignore[reportArgumentType]
    return told.value.remedy or ""


def test_a_name_that_is_nearly_right():
    assert "CartPole-v1" in remedy(name="CartPole-v2")
    assert "engine=torch" in remedy(name="LunarLander-v3")


def test_arguments_that_a_problem_does_not_take():
    assert "sutton_barto_reward" in remedy(name="CartPole-v1", kwargs={"gravity": 3})


def test_an_absent_library_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch):
    import operant.envs.functional.find as module

    monkeypatch.setattr(
        module,
        "find_spec",
        lambda name: None if name in ("gymnax", "brax", "mujoco_playground", "mujoco") else object(),
    )
    assert remedy(name="gymnax:Catch-bsuite") == install_package("gymnax")
    assert remedy(name="brax:ant") == install_package("brax")
    assert remedy(name="playground/CheetahRun") == install_extra("playground")
    assert remedy(name="mjx/HalfCheetah-v5") == install_extra("mjx")
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "mujoco.mjx" else object())
    assert remedy(name="mjx/HalfCheetah-v5") == install_extra("mjx")
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert remedy(name="CartPole-v1") == install_extra("jax")


def test_a_task_of_mjx_in_gymnasium():
    spec = EnvSpec(name="mjx/HalfCheetah-v5", max_t=10, kwargs={"iterations": 2}, normalize_obs=True)
    there = in_gymnasium(spec)
    assert there == EnvSpec(name="HalfCheetah-v5", max_t=10, normalize_obs=True, vectorization="serial")
    assert steps_on_host(there)
    assert in_gymnasium(there) is there


@pytest.mark.parametrize("kind", PROBES)
@pytest.mark.parametrize("continuous", [False, True])
def test_probes_equal_those_of_gymnasium(kind: str, continuous: bool):
    env = find_functional(EnvSpec(name=f"operant/Probe{kind.capitalize()}-v0", kwargs={"continuous": continuous}))
    assert isinstance(env.actions, Continuous if continuous else Discrete)
    peer = Probe(kind, continuous)
    for k in range(8):
        state, seen = env.reset(jax.random.key(k))
        peer.reset(seed=0)
        peer._seen = float(seen[0])
        action = np.array([k / 8], np.float32) if continuous else k % 2
        over = False
        while not over:
            state, outcome = env.step(state, jax.numpy.asarray(action), jax.random.key(0))
            observation, reward, over, _, _ = peer.step(action)
            assert np.asarray(outcome.observation) == pytest.approx(observation)
            assert float(outcome.reward) == pytest.approx(reward)
            assert bool(outcome.terminated) == over


@pytest.mark.parametrize(("name", "actions"), [("gymnax:Catch-bsuite", Discrete), ("gymnax:Pendulum-v1", Continuous)])
def test_an_environment_of_gymnax(name: str, actions: type):
    pytest.importorskip("gymnax")
    env = find_functional(EnvSpec(name=name, max_t=5))
    assert isinstance(env.actions, actions)
    keys = jax.random.split(jax.random.key(0), 3)
    states, observations = jax.vmap(env.reset)(keys)
    assert observations.shape == (3, *env.observation_shape)
    action = np.zeros(3, np.int32) if actions is Discrete else np.zeros((3, 1), np.float32)
    for _ in range(5):
        states, observations, outcome = env.advance(states, jax.numpy.asarray(action), keys)
    assert bool((outcome.terminated | outcome.truncated).all())
    assert "Catch-bsuite" in remedy(name="gymnax:Catch")


def test_declared_traits_are_those_of_the_class():
    declared = {name: found.traits for name in BUILTIN if (found := declaration(name)).traits}
    assert {"CartPole-v1", "Pendulum-v1", "HackMatrix-v0"} <= declared.keys()
    for name, traits in declared.items():
        env = find_functional(EnvSpec(name=name))
        assert traits == Traits(isinstance(env.actions, Discrete), True, env.masked, len(env.observation_shape) == 1)
    assert traits_of(EnvSpec(name="operant/ProbeBoth-v0", kwargs={"continuous": True})) == Traits(discrete=False)
