"""A gate against regressions: which cells became better or worse since results that were stored earlier.

The test is a permutation test over all cells together. Under "nothing has changed" the seeds of a cell could have been
dealt to the earlier and to the present results in any way, so the differences are compared with those of other deals. A
cell is called worse only if it is beyond chance by itself and the cells together are: in a bench where nothing has
changed, any cell at all is called better or worse in 5 % of the cases at most, however many cells there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from operant.benchmark.outcome import Outcome, read_outcome
from operant.benchmark.table import interval
from operant.report.formatting import compact
from operant.report.improvement import NO_DIFFERENCE, drawn_deals, every_deal
from operant.report.stats import CONFIDENCE, Floats

EXIT_WORSE = 1
LEVEL = (1 - CONFIDENCE) / 2  # one half for better, one half for worse
DEALS = 10_000
LEAST_SPREAD = 1e-3  # of all scores: where seeds are equal, a difference is large but not infinite
Verdict = Literal["better", "worse", "no clear difference", "not compared"]


@dataclass(frozen=True)
class CellComparison:
    """A cell beside its stored result. `note` says why it was not compared, or which settings differ."""

    cell: str
    verdict: Verdict
    note: str = ""
    before: str = ""
    now: str = ""
    frames_per_second: tuple[float | None, float | None] = (None, None)

    def as_dict(self) -> dict[str, Any]:
        """The same facts for `--json`."""
        return asdict(self)

    def text(self) -> str:
        """One line."""
        scores = f"{self.before} -> {self.now}" if self.before else ""
        return "  ".join(part for part in (f"{self.cell:24}", self.verdict, scores, self.note) if part)

    def speed_text(self) -> str:
        """One line about frames per second."""
        before, now = self.frames_per_second
        if before is None or now is None:
            return f"{self.cell:24}  not known"
        return f"{self.cell:24}  {compact(before)} -> {compact(now)} frames/s a seed ({now / before:.2f} x)"


def compare_with(folder: Path, outcomes: Sequence[Outcome]) -> list[CellComparison]:
    """Each outcome beside the one of the same cell in the folder."""
    earlier = [read_outcome(folder, outcome["cell"]) for outcome in outcomes]
    pairs = list(zip(earlier, outcomes, strict=True))
    reasons = [_incomparable(before, now) for before, now in pairs]
    fit = [index for index, reason in enumerate(reasons) if not reason]
    found = verdicts([(_each(pairs[index][0]), _each(pairs[index][1])) for index in fit])
    named = dict(zip(fit, found, strict=True))
    return [_comparison(*pair, named.get(index), reasons[index]) for index, pair in enumerate(pairs)]


def verdicts(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> list[Verdict]:
    """For the scores of each cell before and now: better, worse or no clear difference, at 95 % over all of them."""
    worse = _beyond_chance([(before, now) for before, now in pairs])
    better = _beyond_chance([(now, before) for before, now in pairs])
    return [
        "worse" if is_worse else "better" if is_better else NO_DIFFERENCE
        for is_worse, is_better in zip(worse, better, strict=True)
    ]


def _beyond_chance(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> list[bool]:
    """For each cell whether its second scores are lower than its first by more than chance allows.

    The cells' squared statistics are added up and compared with sums over random deals. If the sum is beyond chance,
    the cell that stands out most is named and taken away, and the rest is asked again.
    """
    drops = [_drops(np.asarray(high, float), np.asarray(low, float)) for high, low in pairs]
    named = [False] * len(pairs)
    left = [index for index, found in enumerate(drops) if np.mean(found >= found[0]) <= LEVEL]
    rest = set(range(len(pairs)))
    for index in sorted(left, key=lambda each: -drops[each][0]):
        if _chance_of_sum([drops[each] for each in sorted(rest)]) > LEVEL:
            break
        named[index] = True
        rest.remove(index)
    return named


def _drops(high: Floats, low: Floats) -> Floats:
    """The squared drop from one set of scores to the other, in standard errors (Welch); first as it is, then in other
    deals of all scores to the two sets. A rise counts as no drop."""
    scores = np.concatenate([high, low])
    first = _deals(len(scores), len(high))
    a, b = scores[first], scores[_others(first, len(scores))]
    spread = scores.std()
    if spread <= 1e-12 * abs(scores).max():
        return np.zeros(len(first))
    error = np.sqrt(a.var(axis=1, ddof=1) / a.shape[1] + b.var(axis=1, ddof=1) / b.shape[1])
    drop = (a.mean(axis=1) - b.mean(axis=1)) / np.maximum(error, LEAST_SPREAD * spread)
    # Rounded, so that deals of equal scores tie.
    return np.round(np.maximum(drop, 0.0) ** 2, 9)


def _deals(count: int, chosen: int) -> np.ndarray:
    """Which of `count` scores go to the first set: as it is, then every other way or, of too many, a sample."""
    if math.comb(count, chosen) <= DEALS:
        return every_deal(count, chosen)
    return np.vstack([np.arange(chosen), drawn_deals(count, chosen, DEALS, np.random.default_rng(0))])


def _others(first: np.ndarray, count: int) -> np.ndarray:
    taken = np.zeros((len(first), count), dtype=bool)
    np.put_along_axis(taken, first, True, axis=1)
    return np.nonzero(~taken)[1].reshape(len(first), -1)


def _chance_of_sum(drops: Sequence[Floats]) -> float:
    """How often the sum over cells, each dealt at random, is as large as it is."""
    if len(drops) == 1:
        return float(np.mean(drops[0] >= drops[0][0]))
    rng = np.random.default_rng(0)
    sums = sum(found[rng.integers(0, len(found), DEALS)] for found in drops)
    return (1 + np.count_nonzero(sums >= sum(found[0] for found in drops) - 1e-6)) / (1 + DEALS)


def _incomparable(before: Outcome | None, now: Outcome) -> str:
    """Why two results say nothing about each other; empty where they do."""
    if before is None:
        return "it is not among the stored results"
    if before["frames"] != now["frames"]:
        return f"other budget: {before['frames']:,} frames then, {now['frames']:,} now"
    if before.get("env", now["env"]) != now["env"]:
        return f"other environment: {before['env']} then, {now['env']} now"
    if before.get("problem", now["problem"]) != now["problem"]:
        keys = [key for key in {**before["problem"], **now["problem"]} if _differs(before, now, "problem", key)]
        return f"other {', '.join(keys)}"
    counts = len(_each(before)), len(_each(now))
    if math.comb(sum(counts), counts[0]) * LEVEL < 1:
        return f"{counts[0]} seeds then and {counts[1]} now are too few for any verdict"
    return ""


def _differs(before: Outcome, now: Outcome, section: str, key: str) -> bool:
    return before[section].get(key) != now[section].get(key)


def _each(outcome: Outcome | None) -> list[float]:
    return outcome["greedy"]["each"] if outcome is not None else []


def _comparison(before: Outcome | None, now: Outcome, verdict: Verdict | None, reason: str) -> CellComparison:
    if before is None or verdict is None:
        return CellComparison(now["cell"], "not compared", reason)
    given = before.get("set", now["set"])
    changed = [text for text in now["set"] if text not in given] + [
        f"no {text}" for text in given if text not in now["set"]
    ]
    note = f"with {', '.join(changed)}" if changed else ""
    scores = interval(before["greedy"]), interval(now["greedy"])
    return CellComparison(now["cell"], verdict, note, *scores, (_speed(before), _speed(now)))


def _speed(outcome: Outcome) -> float | None:
    """Frames per second of a seed, on average; None for a run too short for the clock."""
    seconds = sum(outcome["seconds"])
    return outcome["frames"] * len(outcome["seconds"]) / seconds if seconds else None
