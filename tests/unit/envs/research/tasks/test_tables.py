"""Rows divided for learning and judging, and what counts as an answer."""

from __future__ import annotations

import csv
import io
from collections import Counter

import pytest

from operant.envs.research.grading import Unfit
from operant.envs.research.kit.tables import Sheet, divide, predictions

KEYS = [f"row {number}" for number in range(90)] + ["twin"] * 10
CLASSES = ["yes" if number % 3 == 0 else "no" for number in range(100)]


def test_parts_share_no_row_and_no_twin_is_to_be_predicted() -> None:
    parts = divide(KEYS, CLASSES, seed=1, train=50, half=20)
    validation, hidden = parts.halves["validation"], parts.halves["hidden"]
    assert (len(parts.train), len(parts.test), len(validation), len(hidden)) == (50, 40, 20, 20)
    assert not set(parts.train) & set(parts.test)
    assert not validation & hidden
    assert validation | hidden == set(parts.test)
    assert not any(KEYS[row] == "twin" for row in parts.test)


def test_both_halves_have_every_class_at_its_share() -> None:
    for seed in range(5):
        parts = divide(KEYS, CLASSES, seed, train=50, half=20)
        counts = [Counter(CLASSES[row] for row in half) for half in parts.halves.values()]
        assert counts == [Counter(yes=7, no=13)] * 2


def test_the_order_tells_nothing_and_depends_on_the_seed_alone() -> None:
    parts = divide(KEYS, CLASSES, seed=1, train=50, half=20)
    places = parts.places("hidden")
    assert parts == divide(KEYS, CLASSES, seed=1, train=50, half=20) != divide(KEYS, CLASSES, seed=2, train=50, half=20)
    assert sorted(places + parts.places("validation")) == list(range(40))
    assert 5 < sum(place < 20 for place in places) < 15


def test_files_hold_labels_for_rows_to_learn_from_only() -> None:
    sheet = Sheet(("a", "b"), tuple((key, str(at)) for at, key in enumerate(KEYS)), "y", tuple(CLASSES))
    files = sheet.files(divide(sheet.rows, CLASSES, 0, 50, 20), "no")
    read = {name: list(csv.reader(io.StringIO(data.decode()))) for name, data in files.items()}
    assert read["train.csv"][0] == ["a", "b", "y"]
    assert all(row[2] == CLASSES[int(row[1])] for row in read["train.csv"][1:])
    assert read["test.csv"][0] == ["id", "a", "b"]
    assert {row[1] for row in read["test.csv"]}.isdisjoint(row[1] for row in read["train.csv"][1:])
    assert read["sample_submission.csv"] == [["id", "y"], *([str(at), "no"] for at in range(40))]


def test_an_answer_may_be_in_any_order() -> None:
    assert list(predictions("id,y\n2,0.5\n0,1\n\n1,-3e2\n", "y", 3)) == [1.0, -300.0, 0.5]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "id,z\n0,1\n1,1",
        "id,y\n0,1",
        "id,y\n0,1\n0,1",
        "id,y\n0,1\n2,1",
        "id,y\n0,1\n1,1\n2,1",
        "id,y\n0,nan\n1,1",
        "id,y\n0,inf\n1,1",
        "id,y\n0,1\n1,one",
        "id,y\n0,1\n1,1,1",
        "id,y\n0.0,1\n1,1",
        f"id,y\n0,1\n{'9' * 5000},1",
    ],
)
def test_what_is_no_answer_is_unfit(text: str) -> None:
    with pytest.raises(Unfit, match=r"predictions\.csv"):
        predictions(text, "y", 2)
