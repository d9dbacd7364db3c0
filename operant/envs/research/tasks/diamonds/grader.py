"""What a diamond costs: root mean squared error of the logarithm of the price, on a half of those to predict."""

from __future__ import annotations

import csv
import functools
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from operant.envs.research.grading import Unfit, Work
from operant.envs.research.kit.tables import ANSWER, Division, Sheet, divide, predictions

TARGET = "price"
COLUMNS = ("carat", "cut", "color", "clarity", "depth", "table", "x", "y", "z")
TRAIN, HALF = 2000, 500
LEAST, MOST = 0.01, 1e9


def files(data: Mapping[str, Path], seed: int) -> dict[str, bytes]:
    """The diamonds to learn from, those to predict, and a sample with the typical price of the former."""
    table, parts = sheet(data["diamonds"]), division(data["diamonds"], seed)
    typical = np.exp(np.mean([np.log(float(table.labels[row])) for row in parts.train]))
    return table.files(parts, f"{typical:.0f}")


def grade(work: Work) -> float:
    """The error of the predicted prices."""
    table, parts = sheet(work.data["diamonds"]), division(work.data["diamonds"], work.problem)
    said = predictions(work.text(ANSWER), TARGET, len(parts.test))
    if said.min() < LEAST or said.max() > MOST:
        raise Unfit(f"a price must lie between {LEAST:g} and {MOST:g}")
    places = parts.places(work.split)
    return float(np.sqrt(np.mean((np.log(said[places]) - np.log(table.truth(parts, places))) ** 2)))


@functools.lru_cache(maxsize=4)
def sheet(path: Path) -> Sheet:
    """All diamonds."""
    with path.open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    rows = tuple(tuple(row[column] for column in COLUMNS) for row in found)
    return Sheet(COLUMNS, rows, TARGET, tuple(row[TARGET] for row in found))


@functools.lru_cache(maxsize=64)
def division(path: Path, seed: int) -> Division:
    """How a problem divides them."""
    table = sheet(path)
    return divide(table.rows, ["any"] * len(table.rows), seed, TRAIN, HALF)
