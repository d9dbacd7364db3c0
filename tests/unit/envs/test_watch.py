"""Drawing on machines that lack something for it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from operant.envs.watch import WINDOW, Decision, drawing_env, play_one
from operant.errors import UsageError
from operant.spec.settings.sections import EnvSpec

CARTPOLE = EnvSpec(name="CartPole-v1")


class Undrawable(gym.Env):
    """Its library of graphics is absent."""

    observation_space, action_space = Box(-1, 1, (1,), np.float32), Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        return np.zeros(1, np.float32), {}

    def render(self) -> None:
        raise RuntimeError("no OpenGL here\nand more")


def test_what_a_machine_lacks_for_drawing_is_told_in_a_line():
    with pytest.raises(UsageError, match=r"cannot be drawn on this machine: RuntimeError: no OpenGL here$"):
        play_one(Undrawable(), lambda *_: Decision(np.zeros(1)), 0, [])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems draw without a screen by themselves")
@pytest.mark.parametrize(
    ("display", "sink", "chosen"), [("", "pole.gif", "egl"), (":0", "pole.gif", None), ("", WINDOW, None)]
)
def test_mujoco_draws_without_a_screen_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, display: str, sink: str, chosen: str | None
):
    for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"):
        # Set first, so that what the code sets is taken away again.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    if display:
        monkeypatch.setenv("DISPLAY", display)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    drawing_env(CARTPOLE, Path(sink) if sink != WINDOW else sink).close()
    assert os.environ.get("MUJOCO_GL") == chosen


@pytest.mark.parametrize("name", ["HalfCheetah-v5", "Swimmer-v5", "Hopper-v5"])
def test_the_camera_goes_along_with_what_runs_away_and_the_floor_does_not_end(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip("mujoco")
    monkeypatch.setenv("MUJOCO_GL", "egl")
    env = drawing_env(EnvSpec(name=name), Path("run.mp4"))
    env.reset(seed=0)
    body: Any = env.unwrapped
    position = body.data.qpos.copy()
    position[0] += 400.0
    body.set_state(position, body.data.qvel.copy())
    try:
        picture = np.asarray(env.render(), np.int32)
    except Exception as absent:
        pytest.skip(f"nothing draws here: {absent}")
    assert np.sum(picture[..., 0] > picture[..., 2] + 40) > 500, "bodies are brown, floors and skies are not"
    light = picture[-100:].mean(-1)
    assert (light < 60).mean() > 0.1, "black tiles"
    assert (light > 120).mean() > 0.1, "light tiles"
    env.close()


def test_a_wider_floor_changes_no_physics():
    pytest.importorskip("mujoco")
    name, actions = "HalfCheetah-v5", np.random.default_rng(0).uniform(-1, 1, (200, 6))
    drawn, plain = drawing_env(EnvSpec(name=name), Path("run.mp4")), gym.make(name)
    states = []
    for env in (drawn, plain):
        env.reset(seed=3)
        states.append([env.step(action)[0] for action in actions])
        env.close()
    assert np.array_equal(*states)


def test_who_chose_a_camera_keeps_it():
    pytest.importorskip("mujoco")
    chosen = EnvSpec(name="HalfCheetah-v5", kwargs={"default_camera_config": {"distance": 9.0}})
    env: Any = drawing_env(chosen, Path("run.mp4"))
    assert env.unwrapped.camera_name is None
    assert env.unwrapped.mujoco_renderer.default_cam_config == {"distance": 9.0}
    env.close()
