from __future__ import annotations

import pytest

from operant.report.formatting import axis_labels, clock, columns, compact, duration, score


@pytest.mark.parametrize(
    ("value", "text"),
    [(498.6, "498.6"), (500.0, "500.0"), (-186.84, "-186.8"), (12345.6, "12,346"), (0.97, "0.9700"), (0.0, "0.000"),
     (22.9, "22.90"), (None, "-")],
)  # fmt: skip
def test_scores(value: float | None, text: str) -> None:
    assert score(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (7.25, "7.25"), (999, "999"), (999.6, "1k"), (25_000, "25k"), (1_250_000, "1.25M"), (-51_200, "-51.2k"),
     (999_999, "1M"), (2e12, "2T")],
)  # fmt: skip
def test_compact_numbers(value: float, text: str) -> None:
    assert compact(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.42, "0.4 s"), (9.96, "10 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (185, "3 min 05 s"), (3600, "1 h 00 min"),
     (7620, "2 h 07 min"), (273_600, "3 d 04 h")],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("ticks", "labels"),
    [
        ([-1250, -1000, 0], ["-1,250", "-1,000", "0"]),
        ([0.95, 0.975, 1], ["0.950", "0.975", "1.000"]),
        ([0, 250_000, 1_000_000], ["0", "0.25M", "1.00M"]),
        ([0.1 * 3, 0.1 * 4], ["0.3", "0.4"]),
        ([0.0], ["0"]),
    ],
)
def test_axis_labels_tell_ticks_apart(ticks: list[float], labels: list[str]) -> None:
    assert axis_labels(ticks) == labels


def test_columns_align() -> None:
    assert columns([["name", "n"], ["a", "100"]], right={1}) == ["name    n", "a     100"]


@pytest.mark.parametrize(("seconds", "text"), [(6.6, "0:07"), (185, "3:05"), (3599.7, "1:00:00"), (94_060, "26:07:40")])
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text
