"""Films as GIF, with one palette for all pictures: to choose one for each would take most of the time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

SAMPLES = 6


def evenly(count: int) -> list[int]:
    """Which of `count` pictures a palette is chosen from: a few, from the first to the last."""
    return [k * (count - 1) // (SAMPLES - 1) for k in range(SAMPLES)]


def common_palette(samples: Sequence[Image.Image]) -> Image.Image:
    """The 256 colours that suit these pictures, all of one size, together."""
    width, height = samples[0].size
    sheet = Image.new("RGB", (width, height * len(samples)))
    for k, sample in enumerate(samples):
        sheet.paste(sample, (0, k * height))
    return sheet.quantize(256, Image.Quantize.MEDIANCUT)


def write_gif(path: Path, pictures: Iterable[Image.Image], palette: Image.Image, **options: Any) -> None:
    """The pictures in these colours, again and again; `options` are Pillow's, such as `duration` in milliseconds."""
    images = _indexed(pictures, palette)
    next(images).save(path, save_all=True, append_images=images, loop=0, **options)


def _indexed(pictures: Iterable[Image.Image], palette: Image.Image) -> Iterator[Image.Image]:
    for picture in pictures:
        yield picture.quantize(palette=palette, dither=Image.Dither.NONE)
