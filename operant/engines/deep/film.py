"""A policy at play: in a window where there is a screen, otherwise as a film."""

from __future__ import annotations

import os
from pathlib import Path

import gymnasium as gym
import numpy as np

from operant.engines.deep.actor import Actor
from operant.engines.deep.learners import load_actor
from operant.engines.deep.loop import as_episode
from operant.envs.gym import ActionMap, Ended, make_env
from operant.envs.worlds import MaskReader
from operant.errors import UsageError
from operant.run.checkpoint import Checkpoint
from operant.run.episode import Episode
from operant.run.run import Run
from operant.spec.schema import Spec

SUFFIXES = (".gif", ".mp4")
DEFAULT_FPS = 30


def show(run: Run, checkpoint: Checkpoint, episodes: int, seed: int, sink: str | Path) -> list[Episode]:
    """Play greedily; frames go to the window, or to the file `sink`."""
    spec = Spec.model_validate(run.spec)
    in_window = sink == "window"
    if not in_window:
        # pygame draws to memory then, and does not look for a screen.
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    if not in_window and Path(sink).suffix not in SUFFIXES:
        raise UsageError(f"cannot write a film as {sink}", remedy="--out FILE.gif or --out FILE.mp4")
    env = _drawing_env(spec, "human" if in_window else "rgb_array")
    actor = load_actor(spec, checkpoint.path)
    frames: list[np.ndarray] = []
    played = [play_one(env, actor, seed + k, None if in_window else frames) for k in range(episodes)]
    env.close()
    if not in_window:
        _write_film(Path(sink), frames, int(env.metadata.get("render_fps", DEFAULT_FPS)))
    media = None if in_window else str(sink)
    return [as_episode(over, spec.env.name, "watch", checkpoint.at, media) for over in played]


def _drawing_env(spec: Spec, mode: str) -> gym.Env:
    env = make_env(spec.env, render_mode=None)
    modes = env.metadata.get("render_modes") or []
    env.close()
    if mode not in modes:
        raise UsageError(f"{spec.env.name} cannot be drawn as {mode}; it offers {', '.join(modes) or 'nothing'}")
    return make_env(spec.env, render_mode=mode)


def play_one(env: gym.Env, actor: Actor, seed: int, frames: list[np.ndarray] | None) -> Ended:
    """One greedy episode in a single world; its pictures are added to `frames`."""
    actions = ActionMap(env.action_space)
    masks, act = MaskReader([env]), actor.player(seed)
    obs, info = env.reset(seed=seed)
    score, length = 0.0, 0
    while True:
        if frames is not None:
            frames.append(np.asarray(env.render()))
        mask = masks.one(0, info)
        seen = np.asarray(obs, np.float32)[None]
        action = act(seen, None if mask is None else mask[None], np.array([length == 0]))
        obs, reward, terminated, truncated, info = env.step(actions.to_env(action)[0])
        score, length = score + float(reward), length + 1
        if terminated or truncated:
            return Ended(0, seed, score, length, bool(terminated))


def _write_film(path: Path, frames: list[np.ndarray], fps: int) -> None:
    import imageio.v3 as iio

    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gif":
        iio.imwrite(path, frames, duration=1000 / fps, loop=0)
    else:
        iio.imwrite(path, frames, fps=fps, codec="libx264", macro_block_size=2)
