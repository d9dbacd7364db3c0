from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from operant.app.columns import MetricFile, MetricFiles
from operant.app.lines import Line
from operant.app.series import FEWER_POINTS, MANY_LINES, POINTS, Charts, bucket_width, draw_line
from operant.report.align import Curve
from operant.report.stats import mean_interval


def write(path: Path, rows: list[dict[str, float]], mode: str = "w") -> Path:
    with path.open(mode) as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def rows(first: int, last: int, shift: float = 0.0) -> list[dict[str, float]]:
    return [{"frames": number, "train/return": number / 10 + shift} for number in range(first, last)]


def test_a_file_is_read_from_where_the_last_look_ended(tmp_path: Path) -> None:
    path = write(tmp_path / "metrics.jsonl", rows(0, 5))
    file = MetricFile(path)
    file.refresh()
    assert file.rows == 5
    with path.open("a") as half:
        half.write('{"frames": 5, "train/ret')
    file.refresh()
    assert file.rows == 5
    write(path, [{"frames": 0, "other/late": 2.0}])
    file.refresh()
    assert (file.rows, file.last("other/late"), file.last("train/return")) == (1, 2.0, None)


def test_a_file_that_was_cut_back_and_grew_again_is_read_anew(tmp_path: Path) -> None:
    path = write(tmp_path / "metrics.jsonl", rows(0, 5))
    file = MetricFile(path)
    file.refresh()
    write(path, rows(0, 3) + rows(3, 9, shift=100.0))
    file.refresh()
    assert file.curve("train/return", "frames").y.tolist()[-1] == pytest.approx(100.8)
    assert file.rows == 9


def test_columns_that_begin_late_and_words_that_are_no_numbers(tmp_path: Path) -> None:
    found = [{"frames": 1, "a/b": "text"}, {"frames": 2, "late/x": 3.0}]
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in found) + "no row\n[1]\n")
    file = MetricFile(path)
    file.refresh()
    assert file.curve("late/x", "frames").x.tolist() == [2.0]
    assert len(file.curve("a/b", "frames").x) == 0


def test_least_used_files_are_forgotten(tmp_path: Path) -> None:
    files = MetricFiles(most=200)
    paths = [write(tmp_path / f"{name}.jsonl", rows(0, 10)) for name in "abc"]
    first = files.open(paths[0])
    for path in paths[1:]:
        files.open(path)
    assert files.open(paths[0]) is not first


def test_few_rows_are_drawn_as_they_are_with_the_interval_of_the_report() -> None:
    curves = [Curve(np.arange(3.0), np.array([0.0, 1.0, 2.0]) + shift) for shift in (0.0, 1.0, 5.0)]
    drawn = draw_line(curves, bucket_width(curves))
    assert drawn.mean.tolist() == [2.0, 3.0, 4.0]
    expected = mean_interval([0.0, 1.0, 5.0])
    assert drawn.low is not None
    assert drawn.low[0] == pytest.approx(expected.low, abs=0.35)  # fewer resamples
    assert drawn.lowest is None


def test_a_seed_that_ended_early_ends_the_mean_not_the_other_seed() -> None:
    curves = [Curve(np.arange(4.0), np.ones(4)), Curve(np.arange(2.0), np.zeros(2))]
    drawn = draw_line(curves, 0.0)
    assert drawn.mean.tolist()[:2] == [0.5, 0.5]
    assert np.isnan(drawn.mean[2:]).all()
    assert drawn.seeds[0].tolist() == [1.0] * 4


def test_buckets_keep_means_and_extremes() -> None:
    x = np.arange(10_000.0)
    y = np.sin(x)
    y[5_000] = 99.0
    width = bucket_width([Curve(x, y)])
    drawn = draw_line([Curve(x, y)], width)
    assert len(drawn.x) <= POINTS
    assert (width, width % 2) == (32.0, 0.0)
    assert drawn.highest is not None
    assert drawn.highest.max() == 99.0
    assert drawn.mean[0] == pytest.approx(y[:32].mean())


def test_only_new_points_travel_until_the_buckets_change(tmp_path: Path) -> None:
    path = write(tmp_path / "metrics.jsonl", rows(0, 1000))
    charts, line = Charts(MetricFiles()), Line("key", "label", ["run"], [path])

    def ask(have: dict[str, float], form: list | None) -> dict:
        return charts.draw([line], "train/return", "frames", have, form, False)

    first = ask({}, None)
    assert (first["form"], first["rows"]) == ([4.0, True], 1000)
    last = first["lines"][0]["x"][-1]
    write(path, rows(1000, 1004), mode="a")
    second = ask({"key": last}, first["form"])
    assert second["lines"][0]["x"] == [last, last + 4]
    write(path, rows(1004, 3000), mode="a")
    third = ask({"key": last}, first["form"])
    assert third["form"] == [8.0, True]
    assert third["lines"][0]["x"][0] == 4.0


def test_many_lines_have_no_bands_and_fewer_points(tmp_path: Path) -> None:
    pair = [write(tmp_path / f"metrics{seed}.jsonl", rows(0, 1000)) for seed in range(2)]
    charts = Charts(MetricFiles())
    few, many = (
        charts.draw([Line(str(at), "", [], pair) for at in range(count)], "train/return", "frames", {}, None, False)
        for count in (1, MANY_LINES)
    )
    assert (few["form"], many["form"]) == ([4.0, True], [16.0, False])
    assert few["lines"][0]["low"] is not None
    assert many["lines"][0]["low"] is None
    assert len(many["lines"][0]["x"]) <= FEWER_POINTS
