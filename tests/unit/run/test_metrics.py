from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from operant.errors import RunError
from operant.run.metrics import JsonLines, read_rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


def test_rows_come_back_in_order_with_their_keys_in_order(path: Path):
    lines = JsonLines(path)
    lines.append({"frames": 1, "b": 2.5, "a": "é\nline"})
    lines.append({"frames": 2})
    lines.flush()
    rows = read_rows(path)
    assert rows == [{"frames": 1, "b": 2.5, "a": "é\nline"}, {"frames": 2}]
    assert list(rows[0]) == ["frames", "b", "a"]


def test_a_row_is_one_line_for_every_reader(path: Path):
    lines = JsonLines(path)
    said = "next\x85line\u2028and\u2029on, é"
    lines.append({"text": said})
    lines.flush()
    (line,) = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == {"text": said}


def test_rows_wait_in_the_buffer_until_flushed(path: Path):
    lines = JsonLines(path)
    lines.append({"frames": 1})
    assert read_rows(path) == []
    lines.flush()
    assert read_rows(path) == [{"frames": 1}]


def test_offset_is_where_the_file_will_end(path: Path):
    lines = JsonLines(path)
    lines.append({"frames": 1})
    expected = lines.offset
    lines.flush()
    assert path.stat().st_size == expected == lines.offset


def test_a_full_buffer_writes_itself(path: Path):
    lines = JsonLines(path)
    for frames in range(20_000):
        lines.append({"frames": frames, "text": "x" * 10})
    assert 0 < path.stat().st_size < lines.offset


def test_numbers_that_json_lacks_become_null_and_are_named(path: Path):
    lines = JsonLines(path)
    row = {"ok": 1.0, "nan": float("nan"), "inf": np.float32("inf"), "none": None, "parts": {"x": [1.0, float("-inf")]}}
    assert lines.append({"ok": 1.0}) == ()
    assert lines.append(row) == ("nan", "inf", "parts")
    lines.flush()
    strict = json.loads(path.read_text().splitlines()[1], parse_constant=pytest.fail)
    assert strict == {"ok": 1.0, "nan": None, "inf": None, "none": None, "parts": {"x": [1.0, None]}}


def test_numbers_of_numpy_are_plain(path: Path):
    lines = JsonLines(path)
    lines.append({"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True), "d": np.arange(2), "e": np.array(4)})
    lines.flush()
    assert read_rows(path) == [{"a": 0.5, "b": 3, "c": True, "d": [0, 1], "e": 4}]


def test_a_value_that_is_no_data_is_refused_and_leaves_no_trace(path: Path):
    lines = JsonLines(path)
    with pytest.raises(TypeError, match="object"):
        lines.append({"a": object()})
    lines.flush()
    assert path.stat().st_size == 0


def test_readers_leave_out_a_torn_last_line(path: Path):
    path.write_bytes(b'{"frames": 1}\n{"fra')
    assert read_rows(path) == [{"frames": 1}]
    assert path.read_bytes().endswith(b'{"fra')


def test_the_writer_cuts_a_torn_last_line(path: Path):
    path.write_bytes(b'{"frames": 1}\n' + b'{"long": "' + b"x" * 200_000)
    lines = JsonLines(path)
    lines.append({"frames": 2})
    lines.flush()
    assert read_rows(path) == [{"frames": 1}, {"frames": 2}]


def test_a_file_of_one_torn_line_becomes_empty(path: Path):
    path.write_bytes(b'{"frames": 1')
    assert JsonLines(path).offset == 0
    assert path.stat().st_size == 0


def test_truncation_forgets_written_and_buffered_rows(path: Path):
    lines = JsonLines(path)
    lines.append({"frames": 1})
    keep = lines.offset
    lines.append({"frames": 2})
    lines.flush()
    lines.append({"frames": 3})
    lines.truncate_to(keep)
    lines.append({"frames": 4})
    lines.flush()
    assert read_rows(path) == [{"frames": 1}, {"frames": 4}]


def test_truncation_never_lengthens_nor_leaves_half_a_row(path: Path):
    lines = JsonLines(path)
    lines.append({"frames": 1})
    size = lines.offset
    lines.append({"frames": 2})
    lines.flush()
    lines.truncate_to(size + 3)
    assert lines.offset == path.stat().st_size == size
    lines.truncate_to(size + 1000)
    assert lines.offset == path.stat().st_size == size


def test_a_short_write_is_mended_by_the_next_flush(path: Path, monkeypatch: pytest.MonkeyPatch):
    lines = JsonLines(path)
    lines.append({"frames": 1})
    whole = os.write
    monkeypatch.setattr(os, "write", lambda file, data: whole(file, bytes(data)[:4]))
    lines.flush()
    assert read_rows(path) == [{"frames": 1}]


def test_no_file_means_no_rows(path: Path):
    assert read_rows(path) == []


def test_damage_inside_a_file_is_named_by_line(path: Path):
    path.write_bytes(b'{"frames": 1}\n\x00\x00\x00\n{"frames": 3}\n')
    with pytest.raises(RunError, match="not a row") as caught:
        read_rows(path)
    assert caught.value.place == f"{path}:2"
