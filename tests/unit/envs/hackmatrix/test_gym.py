"""HackMatrix as a Gymnasium environment: its checker, seeds, masks, limits, and two learners on it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from operant.envs.hackmatrix.conformance.cases import read_setup
from operant.envs.hackmatrix.faces.gym import HackMatrix
from operant.envs.hackmatrix.faces.set_state import read_state
from operant.envs.vector.autoreset import AutoresetVectorEnv
from operant.spec.settings.sections import EnvSpec


def make(**options: Any) -> gym.Env:
    return gym.make("HackMatrix-v0", disable_env_checker=True, **options)


def inner(env: gym.Env) -> HackMatrix:
    assert isinstance(env.unwrapped, HackMatrix)
    return env.unwrapped


@pytest.mark.parametrize("form", ["flat", "dict"])
# That a number may have no upper limit is how the rules want it.
@pytest.mark.filterwarnings("ignore:.*observation space.*infinity")
def test_gymnasiums_checker_is_content(form: str) -> None:
    env = make(observation=form)
    check_env(env.unwrapped)
    env.close()


def test_the_name_is_known_where_operant_looks_and_jax_is_not_loaded() -> None:
    code = (
        "import sys, gymnasium, operant.envs.gym; gymnasium.make('HackMatrix-v0').reset(seed=1);"
        "sys.exit('jax' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_seed_names_a_game() -> None:
    env = make()
    first, _ = env.reset(seed=3)
    other, _ = env.reset(seed=4)
    again, _ = env.reset(seed=3)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_a_reset_without_a_seed_goes_on_to_another_game() -> None:
    def two_games() -> tuple[np.ndarray, np.ndarray]:
        env = make()
        return env.reset(seed=3)[0], env.reset()[0]

    (first, second), (_, again) = two_games(), two_games()
    assert (first != second).any()
    np.testing.assert_array_equal(second, again)


def test_the_mask_is_told_twice() -> None:
    env = make()
    _, info = env.reset(seed=1)
    for _ in range(20):
        np.testing.assert_array_equal(info["action_mask"], env.get_wrapper_attr("action_masks")())
        assert info["action_mask"].shape == (28,)
        *_, over, _, info = env.step(np.flatnonzero(info["action_mask"])[-1])
        if over:
            _, info = env.reset()


def test_an_illegal_action_ends_the_episode() -> None:
    env = make()
    env.reset(seed=1)
    _, reward, terminated, truncated, info = env.step(4)
    assert (reward, terminated, truncated, info["invalid_action"]) == (0.0, True, False, True)


@pytest.mark.parametrize(
    ("steps", "setup", "ends"),
    [
        (998, "P(0,0 s1)", (False, False)),
        (999, "P(0,0 s1)", (False, True)),
        (999, "P(0,0 hp1 s1); E daemon(0,1) 3", (True, False)),
    ],
)
def test_the_thousandth_step_cuts_unless_it_ends_the_game(steps: int, setup: str, ends: tuple[bool, bool]) -> None:
    env = make()
    env.reset(seed=1)
    game = inner(env).game
    assert game is not None
    game.put(read_state(read_setup(setup)))
    game.steps = steps
    assert env.step(4)[2:4] == ends


def test_parts_add_up_to_the_reward() -> None:
    env = make()
    env.reset(seed=1)
    _, reward, *_, info = env.step(np.flatnonzero(env.get_wrapper_attr("action_masks")())[0])
    assert reward == pytest.approx(sum(info["reward_parts"].values()))
    assert len(info["reward_parts"]) == 15


def test_the_dict_form_says_the_same() -> None:
    flat, _ = make().reset(seed=9)
    parts, _ = make(observation="dict").reset(seed=9)
    np.testing.assert_array_equal(
        flat, np.concatenate([np.ravel(parts[key]) for key in ("player", "programs", "grid")])
    )


def test_it_can_be_drawn() -> None:
    for mode, kind in (("ansi", str), ("rgb_array", np.ndarray)):
        env = make(render_mode=mode)
        env.reset(seed=9)
        assert isinstance(env.render(), kind)


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(ValueError, match="neither 'flat' nor 'dict'"):
        make(observation="picture")


def test_operants_vector_environment_restores_it() -> None:
    spec = EnvSpec(name="HackMatrix-v0", num_envs=2, max_frame=100)

    def play(vector: AutoresetVectorEnv, steps: int) -> list[np.ndarray]:
        seen = []
        for _ in range(steps):
            assert vector.mask is not None
            seen.append(vector.step(vector.mask.argmax(1)).obs)
        return seen

    first, second = (AutoresetVectorEnv(spec, 2, lambda i, k: 10 * i + k, brief=True) for _ in range(2))
    play(first, 30)
    second.restore(first.state())
    np.testing.assert_array_equal(play(first, 20), play(second, 20))


def test_maskable_ppo_of_sb3_contrib_trains_on_it_unchanged() -> None:
    contrib = pytest.importorskip("sb3_contrib")
    env = gym.make("HackMatrix-v0")
    model = contrib.MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=32, n_epochs=1, seed=1, device="cpu")
    model.learn(128)
    observation, info = env.reset(seed=1)
    action, _ = model.predict(observation, action_masks=info["action_mask"], deterministic=True)
    assert info["action_mask"][action]
