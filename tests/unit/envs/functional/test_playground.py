"""What needs MuJoCo Playground skips where it is absent; names and errors are tried without it, in `test_find`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from operant.envs.functional.find import find_functional, traits_of
from operant.errors import UsageError
from operant.spec.settings.sections import EnvSpec
from tests.unit.envs.functional.test_find import remedy

pytest.importorskip("mujoco_playground")
pytestmark = pytest.mark.slow
CARTPOLE = "playground/CartpoleBalance"


def made(name: str = CARTPOLE, **settings: Any) -> Any:
    return find_functional(EnvSpec(name=name, **settings))


def test_its_form_and_its_own_time_limit():
    env = made()
    assert (env.name, env.observation_shape, env.limit) == (CARTPOLE, (5,), 1000)
    assert (env.actions.low, env.actions.high, env.actions.shape) == (-1.0, 1.0, (1,))
    traits = traits_of(EnvSpec(name=CARTPOLE))
    assert (traits.discrete, traits.bounded, traits.masked, traits.vectors) == (False, True, False, True)
    assert made(kwargs={"action_repeat": 4}).limit == 250
    assert made(max_t=7).limit == 7
    assert hash(env) == hash(made())


def test_wrong_names_and_settings_are_told_in_a_line():
    assert "CheetahRun" in remedy(name="playground/CheetaRun")
    assert "ctrl_dt" in remedy(name=CARTPOLE, kwargs={"gravity": 3})
    assert "action_repeat=1" in remedy(name=CARTPOLE, kwargs={"action_repeat": 0})


def test_steps_equal_the_library_and_time_runs_out_apart_from_the_end():
    import jax
    import jax.numpy as jnp

    env, keys = made(max_t=2), jax.random.split(jax.random.key(3), 2)
    states, _ = jax.vmap(env.reset)(keys)
    library, step, advance = env._library, jax.jit(env._library.step), jax.jit(env.advance)
    plain = [jax.jit(library.reset)(jax.random.key_data(key)) for key in keys]
    actions = jnp.array([[5.0], [-0.5]])
    for time in (1, 2):
        states, seen, outcome = advance(states, actions, keys)
        plain = [step(state, jnp.clip(action, -1, 1)) for state, action in zip(plain, actions, strict=True)]
        assert np.allclose(outcome.observation, [state.obs for state in plain], atol=1e-5)
        assert np.allclose(outcome.reward, [state.reward for state in plain], atol=1e-5)
        assert outcome.truncated.tolist() == [time == 2] * 2
        assert not outcome.terminated.any()
    assert states.time.tolist() == [0, 0]
    assert not np.allclose(seen, outcome.observation)


def test_an_unknown_setting_names_the_environment():
    with pytest.raises(UsageError, match=CARTPOLE):
        made(kwargs={"gravity": 3})
