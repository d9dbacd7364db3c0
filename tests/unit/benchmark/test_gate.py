"""The gate does not cry wolf, and finds one broken cell among many as well as all of them broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from operant.benchmark.gate import compare_with, verdicts

LEVEL = "no clear difference"


@pytest.mark.parametrize("cells", [1, 5])
def test_a_bench_in_which_nothing_changed_has_a_verdict_in_one_of_twenty_at_most(cells: int):
    rng = np.random.default_rng(cells)
    trials = [verdicts([tuple(rng.normal(size=(2, 4))) for _ in range(cells)]) for _ in range(200)]
    alarms = sum(any(each != LEVEL for each in found) for found in trials)
    # 10 are expected; more than 18 of 200 have a chance below 1 %.
    assert alarms <= 18


def test_one_broken_cell_among_many_is_named_and_so_are_all_broken_ones():
    rng = np.random.default_rng(0)
    pairs = [tuple(rng.normal(size=(2, 4))) for _ in range(18)]
    broken = [(before, now - 30) for before, now in pairs]
    assert verdicts([*pairs[:17], broken[17]]).count("worse") == 1
    assert verdicts(broken) == ["worse"] * 18
    assert verdicts([(now, before) for before, now in broken]) == ["better"] * 18


def test_equal_scores_and_a_single_bad_seed_are_no_difference():
    solved = [500.0] * 4
    assert verdicts([(solved, solved)]) == [LEVEL]
    assert verdicts([(solved, [500.0, 500.0, 500.0, 9.0])]) == [LEVEL]
    assert verdicts([(solved, [9.0] * 4)]) == ["worse"]
    assert verdicts([]) == []


def outcome(scores: list[float], **more: Any) -> dict[str, Any]:
    greedy = {"point": float(np.mean(scores)), "low": min(scores), "high": max(scores), "each": scores}
    kept = {"cell": "a", "env": "E", "frames": 100, "greedy": greedy, "seconds": [2.0], "set": [], "problem": {}}
    return {**kept, **more}


@pytest.mark.parametrize(
    ("stored", "verdict", "words"),
    [
        (outcome([9.0, 9.1, 9.2, 9.3]), "worse", "with lr=1"),
        (outcome([9.0, 9.1, 9.2, 9.3], frames=50), "not compared", "other budget: 50 frames then, 100 now"),
        (outcome([9.0, 9.1, 9.2, 9.3], env="F"), "not compared", "other environment: F then, E now"),
        (outcome([9.0, 9.1, 9.2, 9.3], problem={"max_t": 5}), "not compared", "other max_t"),
        (outcome([9.0, 9.1]), "not compared", "2 seeds then and 4 now are too few for any verdict"),
        (None, "not compared", "it is not among the stored results"),
    ],
)
def test_only_what_is_comparable_is_compared(tmp_path: Path, stored: Any, verdict: str, words: str):
    if stored is not None:
        (tmp_path / "a.json").write_text(json.dumps(stored))
    [found] = compare_with(tmp_path, [outcome([1.0, 1.1, 1.2, 1.3], set=["lr=1"])])
    assert (found.verdict, found.note) == (verdict, words)


def test_results_stored_before_there_were_settings_are_compared_and_speed_is_told(tmp_path: Path):
    old = outcome([1.0, 1.1, 1.2, 1.3], seconds=[4.0, 4.0])
    del old["set"], old["problem"]
    (tmp_path / "a.json").write_text(json.dumps(old))
    [found] = compare_with(tmp_path, [outcome([1.0, 1.1, 1.2, 1.3], set=["lr=1"])])
    assert (found.verdict, found.note) == (LEVEL, "")
    assert found.speed_text().endswith("25 -> 50 frames/s a seed (2.00 x)")
