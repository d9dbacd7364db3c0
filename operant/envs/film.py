"""Pictures of an environment: in a window where there is a screen, otherwise as a film."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import gymnasium as gym
import numpy as np

from operant.envs.gym import make_env
from operant.errors import UsageError

if TYPE_CHECKING:
    from operant.spec.settings.sections import EnvSpec

WINDOW = "window"
SUFFIXES = (".gif", ".mp4")
DEFAULT_FPS = 30


def drawing_env(spec: EnvSpec, sink: str | Path) -> gym.Env:
    """The environment of a spec, drawing to a window or for a film; `UsageError` where it cannot."""
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
    if mode not in modes:
        raise UsageError(f"{spec.name} cannot be drawn as {mode}; it offers {', '.join(modes) or 'nothing'}")
    return make_env(spec, render_mode=mode)


def write_film(path: Path, frames: list[np.ndarray], env: gym.Env) -> None:
    """The pictures as a .gif or .mp4 file, at the environment's own pace."""
    fps = int(env.metadata.get("render_fps", DEFAULT_FPS))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gif":
        _write_gif(path, frames, fps)
    else:
        import imageio.v3 as iio

        iio.imwrite(path, frames, fps=fps, codec="libx264", macro_block_size=2)


def _write_gif(path: Path, frames: list[np.ndarray], fps: int) -> None:
    from PIL import Image

    from operant.envs.gif import common_palette, evenly, write_gif

    palette = common_palette([Image.fromarray(frames[k]) for k in evenly(len(frames))])
    write_gif(path, (Image.fromarray(frame) for frame in frames), palette, duration=1000 / fps)
