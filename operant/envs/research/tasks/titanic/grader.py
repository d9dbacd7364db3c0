"""Who survived: accuracy on a half of the passengers to predict.

Names, tickets and numbers are not shown: by them the fate of each passenger is widely known, and could be recited.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Mapping
from pathlib import Path

from operant.envs.research.grading import Work
from operant.envs.research.kit.tables import ANSWER, Division, Sheet, divide, predictions

TARGET = "survived"
COLUMNS = ("class", "title", "sex", "age", "siblings_spouses", "parents_children", "fare", "deck", "port")
TRAIN, HALF = 491, 200


def files(data: Mapping[str, Path], seed: int) -> dict[str, bytes]:
    """The passengers to learn from, those to predict, and a sample that says that nobody survived."""
    return sheet(data["passengers"]).files(division(data["passengers"], seed), "0")


def grade(work: Work) -> float:
    """The share of passengers whose fate was predicted."""
    table, parts = sheet(work.data["passengers"]), division(work.data["passengers"], work.problem)
    said = predictions(work.text(ANSWER), TARGET, len(parts.test))
    places = parts.places(work.split)
    return float((said[places] == table.truth(parts, places)).mean())


@functools.lru_cache(maxsize=4)
def sheet(path: Path) -> Sheet:
    """The passengers without what names them."""
    with path.open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    rows = tuple(
        (
            row["Pclass"],
            row["Name"].partition(", ")[2].partition(".")[0],
            row["Sex"],
            row["Age"],
            row["SibSp"],
            row["Parch"],
            row["Fare"],
            row["Cabin"][:1],
            row["Embarked"],
        )
        for row in found
    )
    return Sheet(COLUMNS, rows, TARGET, tuple(row["Survived"] for row in found))


def division(path: Path, seed: int) -> Division:
    """How a problem divides them; both halves have the same share of survivors."""
    table = sheet(path)
    return divide(table.rows, table.labels, seed, TRAIN, HALF)
