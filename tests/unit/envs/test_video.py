"""A film keeps its pictures' colours, though all share one palette."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from operant.envs.video import common_palette, evenly, write_gif

COLOURS = [(200, 30, 30), (30, 200, 30), (30, 30, 200), (255, 255, 255)]


@pytest.mark.parametrize("count", [1, 2, 4, 40])
def test_pictures_come_back_in_their_colours(tmp_path: Path, count: int):
    drawn = [np.full((12, 16, 3), COLOURS[k * len(COLOURS) // count], np.uint8) for k in range(count)]
    for k, picture in enumerate(drawn):
        picture[0, k % 16] = 0  # two equal ones in a row would be written as one that lasts longer
    pictures = [Image.fromarray(picture) for picture in drawn]
    write_gif(tmp_path / "film.gif", pictures, common_palette([pictures[k] for k in evenly(count)]), duration=50)
    with Image.open(tmp_path / "film.gif") as film:
        assert getattr(film, "n_frames", 1) == count
        for k, wanted in enumerate(drawn):
            film.seek(k)
            assert np.abs(np.asarray(film.convert("RGB")).astype(int) - wanted).max() <= 8


def test_a_palette_is_chosen_from_the_first_to_the_last_picture():
    assert evenly(1) == [0] * 6
    assert evenly(501) == [0, 100, 200, 300, 400, 500]
