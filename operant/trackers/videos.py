"""Videos in the form that a tracker shows."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

FPS = 30


def gif_frames(video: Path) -> tuple[bytes, int, int]:
    """A video as an animated GIF, with its height and width."""
    import imageio.v3 as iio
    from PIL import Image

    if video.suffix == ".gif":
        with Image.open(video) as image:
            return video.read_bytes(), image.height, image.width
    frames = [Image.fromarray(frame) for frame in iio.imiter(video)]
    buffer = BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:], duration=1000 / FPS, loop=0)
    return buffer.getvalue(), frames[0].height, frames[0].width
