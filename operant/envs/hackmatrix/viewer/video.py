"""Replays as videos: GIF by Pillow with one palette for all frames, MP4 by imageio."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from operant.envs.hackmatrix.viewer.picture import HEIGHT, WIDTH, picture
from operant.envs.hackmatrix.viewer.replay import Frame
from operant.envs.hackmatrix.viewer.tiles import COLOURS
from operant.envs.video import common_palette, evenly, write_gif

FRAMES_PER_SECOND = 4
LAST_FRAME_TIMES = 8  # how long the end of a game stays to be looked at

Captioned = list[tuple[Frame, str]]


def write_video(shown: Captioned, path: Path) -> None:
    """Write frames and the words above them as .gif or .mp4."""
    if path.suffix == ".gif":
        _write_gif(shown, path)
    else:
        _write_mp4(shown, path)


def _write_gif(shown: Captioned, path: Path) -> None:
    moment = 1000 // FRAMES_PER_SECOND
    times = [moment * (LAST_FRAME_TIMES if frame.action is None else 1) for frame, _ in shown]
    write_gif(path, (picture(*each) for each in shown), _palette(shown), duration=times, disposal=1)


def _palette(shown: Captioned) -> Image.Image:
    """One palette for all: the colours of some frames, evenly taken, and of every kind of thing."""
    swatches = Image.new("RGB", (WIDTH, HEIGHT))
    swatch = WIDTH // len(COLOURS)
    for k, colour in enumerate(COLOURS.values()):
        swatches.paste(colour, (k * swatch, 0, (k + 1) * swatch, HEIGHT))
    return common_palette([*(picture(*shown[k]) for k in evenly(len(shown))), swatches])


def _write_mp4(shown: Captioned, path: Path) -> None:
    import imageio.v2 as imageio

    with imageio.get_writer(path, fps=FRAMES_PER_SECOND) as video:
        for frame, caption in shown:
            image = np.asarray(picture(frame, caption))
            for _ in range(LAST_FRAME_TIMES if frame.action is None else 1):
                video.append_data(image)  # type: ignore[attr-defined]
