"""Videos: MP4 by imageio, GIF by Pillow with one palette for all frames, since one for each takes most of the time."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

SAMPLES = 6


def evenly(count: int) -> list[int]:
    """Which of `count` frames a palette is chosen from: a few, from the first to the last."""
    return [k * (count - 1) // (SAMPLES - 1) for k in range(SAMPLES)]


def common_palette(samples: Sequence[Image.Image]) -> Image.Image:
    """The 256 colours that suit these frames, all of one size, together."""
    width, height = samples[0].size
    sheet = Image.new("RGB", (width, height * len(samples)))
    for k, sample in enumerate(samples):
        sheet.paste(sample, (0, k * height))
    return sheet.quantize(256, Image.Quantize.MEDIANCUT)


def write_gif(path: Path, frames: Iterable[Image.Image], palette: Image.Image, **options: Any) -> None:
    """The frames in these colours, again and again; `options` are Pillow's, such as `duration` in milliseconds."""
    images = _indexed(frames, palette)
    next(images).save(path, save_all=True, append_images=images, loop=0, **options)


def _indexed(frames: Iterable[Image.Image], palette: Image.Image) -> Iterator[Image.Image]:
    for frame in frames:
        yield frame.quantize(palette=palette, dither=Image.Dither.NONE)


def write_video(path: Path, frames: list[np.ndarray], fps: int) -> None:
    """The frames as a .gif or .mp4 file, at so many a second."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gif":
        _write_frames(path, frames, fps)
    else:
        import imageio.v3 as iio

        with warnings.catch_warnings():
            # What is forked becomes ffmpeg at once, so JAX's threads do it no harm.
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
            iio.imwrite(path, frames, fps=fps, codec="libx264", macro_block_size=2)


def _write_frames(path: Path, frames: list[np.ndarray], fps: int) -> None:
    palette = common_palette([Image.fromarray(frames[k]) for k in evenly(len(frames))])
    write_gif(path, (Image.fromarray(frame) for frame in frames), palette, duration=1000 / fps)
