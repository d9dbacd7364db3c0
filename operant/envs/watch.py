"""`operant watch`: a policy's episodes in a window, as a video, or as replays where the environment has them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from operant.envs.gym import MUJOCO, make_env
from operant.envs.registry import declaration, registered
from operant.envs.vector.actions import ActionMap
from operant.envs.vector.masks import MaskReader
from operant.envs.video import write_video
from operant.errors import UsageError
from operant.registry import load
from operant.run.episode import Episode
from operant.run.progress import Progress

if TYPE_CHECKING:
    from operant.spec.settings.sections import EnvSpec


WINDOW = "window"
TERMINAL = "terminal"
SUFFIXES = (".gif", ".mp4")
DEFAULT_FPS = 30
SCREENS = {"DISPLAY", "WAYLAND_DISPLAY"}
CAMERAS = {"camera_id", "camera_name", "default_camera_config"}
FOLLOWING = "track"
"""What Gymnasium's models call a camera that follows the body."""
TRACKING = 1
"""MuJoCo's `mjCAMERA_TRACKING`."""
PLANE = 0
"""MuJoCo's `mjGEOM_PLANE`."""
WIDER = 50


@dataclass(frozen=True)
class Decision:
    """An action [1, ...], and the policy's probabilities and value where it has them."""

    action: np.ndarray
    probabilities: Any = None
    value: Any = None


Decide = Callable[[np.ndarray, np.ndarray | None, np.ndarray], Decision]
"""From an observation [1, ...], what is legal, and whether the episode begins here [1], to a decision."""


@dataclass(frozen=True)
class Watched:
    """One episode to its end."""

    seed: int
    score: float
    terminated: bool
    decisions: list[Decision]


def watch_policy(
    env: EnvSpec, load: Callable[[], Decide], seeds: range, sink: str | Path, at: Progress
) -> list[Episode]:
    """Play one episode for each seed and show them all; `at` is where the policy was in its training.

    The policy is loaded only once it is known that the problem can be shown as asked.
    """
    replays = replays_of(env.name, sink)
    shown = make_env(env) if replays else drawing_env(env, sink)
    frames: list[np.ndarray] | None = None if replays or sink == WINDOW else []
    decide = load()
    watched = [play_one(shown, decide, seed, frames) for seed in seeds]
    shown.close()
    if replays:
        replays([(each.seed, each.decisions) for each in watched], sink)
    elif frames is not None:
        write_video(Path(sink), frames, int(shown.metadata.get("render_fps", DEFAULT_FPS)))
    media = str(sink) if isinstance(sink, Path) else None
    return [_as_episode(each, env.name, at, media) for each in watched]


def replays_of(env: str, sink: str | Path) -> Callable[..., None] | None:
    """What shows whole games of an environment at this sink, with the policy's outputs beside them; None for frames."""
    path = declaration(env).replays if registered(env) else None
    return load(path, "env.name") if path and (sink == TERMINAL or isinstance(sink, Path)) else None


def play_one(env: gym.Env, decide: Decide, seed: int, frames: list[np.ndarray] | None) -> Watched:
    """One episode in one environment; its frames are added to `frames`."""
    actions, masks = ActionMap(env.action_space), MaskReader([env])
    obs, info = env.reset(seed=seed)
    decisions: list[Decision] = []
    score = 0.0
    while True:
        if frames is not None:
            frames.append(_drawn(env))
        mask = masks.one(0, info)
        begins = np.array([not decisions])
        decisions.append(decide(np.asarray(obs, np.float32)[None], None if mask is None else mask[None], begins))
        obs, reward, terminated, truncated, info = env.step(actions.to_env(decisions[-1].action)[0])
        score += float(reward)
        if terminated or truncated:
            return Watched(seed, score, bool(terminated), decisions)


def _drawn(env: gym.Env) -> np.ndarray:
    """A picture; whatever the machine lacks for it is told in one line."""
    try:
        return np.asarray(env.render())
    except Exception as problem:  # libraries of graphics fail in any way
        name, reason = env.spec.id if env.spec else env, str(problem).partition("\n")[0]
        in_mujoco = type(env.unwrapped).__module__.startswith(MUJOCO)
        raise UsageError(
            f"{name} cannot be drawn on this machine: {type(problem).__name__}: {reason}",
            remedy="MUJOCO_GL=egl or osmesa, with the system's libEGL or libOSMesa" if in_mujoco else None,
        ) from problem


def _as_episode(watched: Watched, env: str, at: Progress, media: str | None) -> Episode:
    how = "terminated" if watched.terminated else "truncated"
    return Episode(env, "watch", watched.seed, at, watched.score, len(watched.decisions), how, media=media)


def drawing_env(spec: EnvSpec, sink: str | Path) -> gym.Env:
    """The environment of a spec, drawing to a window or for a video; `UsageError` where it cannot."""
    in_window = sink == WINDOW
    if not in_window:
        # pygame draws to memory then, and does not look for a screen.
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    if not in_window and Path(sink).suffix not in SUFFIXES:
        raise UsageError(f"{spec.name} cannot be shown as {sink}", remedy="--out FILE.gif or --out FILE.mp4")
    mode = "human" if in_window else "rgb_array"
    env = make_env(spec, render_mode=None)
    modes = env.metadata.get("render_modes") or []
    env.close()
    if not in_window and sys.platform == "linux" and not (os.environ.keys() & SCREENS):
        # MuJoCo would look for a screen. Not before it was imported, which fails where there is no EGL.
        os.environ.setdefault("MUJOCO_GL", "egl")
    if mode not in modes:
        raise UsageError(f"{spec.name} cannot be drawn as {mode}; it offers {', '.join(modes) or 'nothing'}")
    env = make_env(spec, render_mode=mode)
    if not spec.kwargs.keys() & CAMERAS:
        follow(env)
    return env


def follow(env: gym.Env) -> None:
    """Let the camera go along with a body whose MuJoCo model means to be followed: Gymnasium's stays behind."""
    renderer = getattr(env.unwrapped, "mujoco_renderer", None)
    if renderer is None or FOLLOWING not in [renderer.model.camera(k).name for k in range(renderer.model.ncam)]:
        return
    renderer.camera_id = None
    renderer.default_cam_config = {"type": TRACKING, "trackbodyid": 1, **(renderer.default_cam_config or {})}
    _widen_floor(renderer.model)


def _widen_floor(model: Any) -> None:
    """Draw the floor as far as bodies run, with tiles of the same size. A plane has no end in MuJoCo's physics."""
    for geom in range(model.ngeom):
        material = model.geom_matid[geom]
        if model.geom_type[geom] == PLANE and material >= 0:
            model.geom_size[geom, :2] *= WIDER
            model.mat_texrepeat[material] *= WIDER
