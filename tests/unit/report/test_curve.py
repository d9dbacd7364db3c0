from __future__ import annotations

import io

import numpy as np
import pytest

from operant.report.align import Curve
from operant.report.curve import ASCII_PEN, BRAILLE_PEN, draw_curve, nice_ticks, pen_for


def rising(top: float = 500.0, end: int = 50_000) -> Curve:
    x = np.linspace(1000, end, 50)
    return Curve(x, top * x / 50_000)


def picture(drawing: str) -> list[str]:
    """The lines between heading and floor, without their numbers."""
    return [
        line[line.index("|") + 1 :] if "|" in line else line[line.index("+") + 1 :]
        for line in drawing.split("\n")[1:-2]
    ]


def test_size_heading_and_axes() -> None:
    lines = draw_curve([rising()] * 3, title="train/return", pen=BRAILLE_PEN).split("\n")
    assert lines[0] == "train/return, mean of 3 seeds (░ their range)"
    assert len(lines) == 1 + 12 + 2
    assert lines[1].startswith("500 ┤")
    assert lines[12].startswith("  0 ┤")
    assert lines[-1].split() == ["0", "10k", "20k", "30k", "40k", "50k", "frames"]
    assert max(map(len, lines[1:-1])) == len("500 ┤") + 64


def test_a_straight_line_rises_from_corner_to_corner() -> None:
    rows = picture(draw_curve([rising()], title="r", pen=ASCII_PEN))
    assert rows[0].rstrip().endswith("*")
    assert len(rows[0].rstrip()) == 64
    assert rows[-1].strip().startswith("*")
    firsts = [row.index("*") for row in reversed(rows)]
    assert firsts == sorted(firsts)


def test_the_band_is_drawn_between_the_seeds_and_the_mean_in_its_middle() -> None:
    flat = [Curve(np.array([0.0, 100.0]), np.array([level, level])) for level in (0.0, 50.0, 100.0)]
    rows = picture(draw_curve(flat, title="r", pen=ASCII_PEN))
    column = [row[30] for row in rows]
    assert column.count("*") == 1
    assert set(column) == {"*", "."}
    assert column.index("*") in (5, 6)


def test_the_mean_stops_where_a_seed_does_and_the_range_goes_on() -> None:
    rows = picture(draw_curve([rising(500), rising(300, end=20_000)], title="r", pen=ASCII_PEN))
    right = "".join(row[30:] for row in rows)
    assert "*" not in right
    assert "." in right


def test_one_seed_one_point_and_no_point() -> None:
    lone = Curve(np.array([100.0]), np.array([-150.0]))
    drawing = draw_curve([lone], title="eval/score", pen=ASCII_PEN)
    assert drawing.startswith("eval/score, one seed\n")
    assert sum(row.count("*") for row in picture(drawing)) == 1
    assert draw_curve([Curve(np.empty(0), np.empty(0))], title="eval/score") == "eval/score: no values yet"


def test_a_point_at_frame_zero_does_not_divide_by_zero() -> None:
    assert "*" in draw_curve([Curve(np.array([0.0]), np.array([0.0]))], title="r", pen=ASCII_PEN)


@pytest.mark.parametrize(
    ("encoding", "pen"), [("utf-8", BRAILLE_PEN), ("UTF8", BRAILLE_PEN), ("ascii", ASCII_PEN), ("latin-1", ASCII_PEN)]
)
def test_the_pen_suits_the_stream(encoding: str, pen: object) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    assert pen_for(stream) is pen
    stream.write(draw_curve([rising()] * 2, title="r", pen=pen_for(stream)))
    stream.flush()


@pytest.mark.parametrize(
    ("low", "high"), [(9, 500), (-1200, -130), (0.95, 1), (-1e-7, 3e-7), (1e9, 1.3e9), (7, 7), (0, 0), (-3, 1e6)]
)
def test_ticks_enclose_the_values_in_few_even_steps(low: float, high: float) -> None:
    ticks = nice_ticks(low, high)
    steps = np.diff(ticks)
    slack = 1e-6 * steps[0]
    assert ticks[0] <= low + slack
    assert ticks[-1] >= high - slack
    assert 1 <= len(steps) <= 5
    np.testing.assert_allclose(steps, steps[0])
