"""Rows with labels, divided for learning and judging: rows to learn from, and rows to predict in two secret halves.

A row that has a twin, equal in all that is shown, is never one to predict, so that no label can be looked up.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from operant.envs.research.grading import Split, Unfit

TRAIN, TEST, SAMPLE, ANSWER = "train.csv", "test.csv", "sample_submission.csv", "predictions.csv"


@dataclass(frozen=True)
class Division:
    """Row numbers: those to learn from, those to predict in the order shown, and which of these belong to a half."""

    train: tuple[int, ...]
    test: tuple[int, ...]
    halves: Mapping[Split, frozenset[int]]

    def places(self, split: Split) -> list[int]:
        """Where the rows of a half stand among those to predict."""
        return [place for place, row in enumerate(self.test) if row in self.halves[split]]


def divide(keys: Sequence[Hashable], classes: Sequence[Hashable], seed: int, train: int, half: int) -> Division:
    """`train` rows to learn from and two halves to predict, in which every class has its usual share."""
    rng = np.random.default_rng(seed)
    times = Counter(keys)
    order = [int(row) for row in rng.permutation(len(keys))]
    single = [row for row in order if times[keys[row]] == 1]
    quota = quotas(Counter(classes[row] for row in single), half)
    validation = take(single, classes, quota)
    hidden = take([row for row in single if row not in validation], classes, quota)
    test = [int(row) for row in rng.permutation(sorted(validation | hidden))]
    learnt = [row for row in order if row not in validation and row not in hidden]
    return Division(tuple(learnt[:train]), tuple(test), {"validation": validation, "hidden": hidden})


def quotas(times: Counter[Hashable], half: int) -> dict[Hashable, int]:
    """How many rows of each class make a half; what rounding leaves over or short is the most frequent one's."""
    total = times.total()
    quota = {name: round(half * count / total) for name, count in times.items()}
    quota[times.most_common(1)[0][0]] += half - sum(quota.values())
    return quota


def take(rows: Sequence[int], classes: Sequence[Hashable], quota: Mapping[Hashable, int]) -> frozenset[int]:
    """The first rows of each class, as many as its quota."""
    taken: Counter[Hashable] = Counter()
    chosen = set()
    for row in rows:
        if taken[classes[row]] < quota[classes[row]]:
            taken[classes[row]] += 1
            chosen.add(row)
    return frozenset(chosen)


@dataclass(frozen=True)
class Sheet:
    """A table of text: the columns shown, their rows, and the labels of column `target`."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    target: str
    labels: tuple[str, ...]

    def files(self, division: Division, guess: str) -> dict[str, bytes]:
        """What an agent finds; the sample says `guess` for every row."""
        learnt = [(*self.rows[row], self.labels[row]) for row in division.train]
        asked = [(str(place), *self.rows[row]) for place, row in enumerate(division.test)]
        return {
            TRAIN: written((*self.columns, self.target), learnt),
            TEST: written(("id", *self.columns), asked),
            SAMPLE: sample(self.target, len(division.test), guess),
        }

    def truth(self, division: Division, places: Sequence[int]) -> np.ndarray:
        """The labels at these places as numbers."""
        return np.array([float(self.labels[division.test[place]]) for place in places])


def sample(target: str, count: int, guess: str) -> bytes:
    """An answer of the right form that says the same of every row."""
    return written(("id", target), [(str(place), guess) for place in range(count)])


def written(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bytes:
    """A CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode()


def predictions(text: str, target: str, count: int) -> np.ndarray:
    """The numbers of an answer, one for every row in the order of test.csv; `Unfit` for anything else."""
    lines = [line.split(",") for line in text.splitlines() if line.strip()]
    if not lines or [word.strip() for word in lines[0]] != ["id", target]:
        raise Unfit(f"{ANSWER} must begin with the line id,{target}")
    if len(lines) != count + 1 or any(len(line) != 2 for line in lines):
        raise Unfit(f"{ANSWER} must have {count} rows of two numbers after its first line, not {len(lines) - 1}")
    said = dict(number_pair(line) for line in lines[1:])
    if said.keys() != set(range(count)):
        raise Unfit(f"{ANSWER} must name each id from 0 to {count - 1} once")
    return np.array([said[place] for place in range(count)])


def number_pair(line: Sequence[str]) -> tuple[int, float]:
    """A row of an answer; `Unfit` where it holds anything but a whole number and a finite one."""
    try:
        place, number = int(line[0]), float(line[1])
    except (ValueError, OverflowError):
        raise Unfit(f"{ANSWER} has a row that is no pair of numbers: {','.join(line)[:60]!r}") from None
    if not math.isfinite(number):
        raise Unfit(f"{ANSWER} has a number that is not finite: {','.join(line)[:60]!r}")
    return place, number
