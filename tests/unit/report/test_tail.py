from __future__ import annotations

import json
from pathlib import Path

import pytest

from operant.errors import RunError
from operant.report.tail import FIRST_LOOK, Tail, last_rows, newest_values


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


def add(file: Path, text: str) -> None:
    with file.open("a") as stream:
        stream.write(text)


def test_each_row_is_given_once(file: Path) -> None:
    tail = Tail(file)
    assert tail.read() == []
    add(file, '{"frames": 1}\n{"frames": 2}\n')
    assert [row["frames"] for row in tail.read()] == [1, 2]
    assert tail.read() == []
    add(file, '{"frames": 3}\n')
    assert [row["frames"] for row in tail.read()] == [3]


def test_a_line_in_the_making_waits(file: Path) -> None:
    tail = Tail(file)
    add(file, '{"frames": 1}\n{"fra')
    assert [row["frames"] for row in tail.read()] == [1]
    add(file, 'mes": 2}\n')
    assert [row["frames"] for row in tail.read()] == [2]


def test_a_cut_file_is_read_anew(file: Path) -> None:
    tail = Tail(file)
    add(file, '{"frames": 1}\n{"frames": 2}\n')
    tail.read()
    file.write_text('{"frames": 1}\n')
    assert [row["frames"] for row in tail.read()] == [1]
    assert tail.is_history
    add(file, '{"frames": 2}\n')
    assert [row["frames"] for row in tail.read()] == [2]
    assert not tail.is_history


def test_only_the_end_of_a_long_file_is_read(file: Path) -> None:
    add(file, "".join(f'{{"frames": {number}, "pad": "{"x" * 80}"}}\n' for number in range(5000)))
    rows = last_rows(file)
    assert rows[-1]["frames"] == 4999
    assert rows[0]["frames"] > 0
    assert len(rows) * 100 <= FIRST_LOOK
    assert [row["frames"] for row in rows] == list(range(rows[0]["frames"], 5000))


def test_later_looks_read_only_what_is_new(file: Path) -> None:
    tail = Tail(file)
    add(file, '{"frames": 1}\n')
    tail.read()
    # Were the file reread, the damage done to its beginning would show.
    data = file.read_bytes()
    file.write_bytes(b"#" * (len(data) - 1) + b"\n" + b'{"frames": 2}\n')
    assert [row["frames"] for row in tail.read()] == [2]


def test_a_folder_in_its_place_is_named(tmp_path: Path) -> None:
    (folder := tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(RunError, match=r"metrics\.jsonl: the file cannot be read: Is a directory"):
        Tail(folder).read()


@pytest.mark.parametrize("count", [1, 3, 1000])
@pytest.mark.parametrize("torn", ["", '{"frames": 99, "la'])
def test_newest_values_are_found_from_the_end(tmp_path: Path, count: int, torn: str) -> None:
    path = tmp_path / "metrics.jsonl"
    lines = [json.dumps({"frames": number, "pad": "x" * 90, "score": None}) for number in range(count)]
    lines[0] = json.dumps({"frames": 0, "score": 7.0})
    path.write_text("\n".join(lines) + "\n" + torn)
    assert newest_values(path, ("frames", "score", "absent"), most=1 << 20) == {"frames": count - 1, "score": 7.0}
    near = newest_values(path, ("frames", "score"), most=500)
    assert near["frames"] == count - 1
    assert ("score" in near) == (count <= 3)


def test_newest_values_of_nothing_are_none(tmp_path: Path) -> None:
    assert newest_values(tmp_path / "absent", ("frames",)) == {}
    (tmp_path / "empty").write_text("")
    assert newest_values(tmp_path / "empty", ("frames",)) == {}
    (tmp_path / "torn").write_text('{"frames": 1')
    assert newest_values(tmp_path / "torn", ("frames",)) == {}
