"""Results joined: every seed keeps its own scores, in the order of the seeds, and what cannot be known is left out."""

from __future__ import annotations

from typing import Any

import pytest

from operant.benchmark.join import joined


def result(seeds: list[int], scores: list[float], average: list[float] | None, commit: str) -> dict[str, Any]:
    return {
        "seeds": seeds,
        "set": ["agent.algorithm.gamma=0.9", f"meta.seed={seeds[0]}"],
        "greedy": {"each": scores},
        "sampled": {"each": [score - 1 for score in scores]},
        "total_reward_ma": None if average is None else {"each": average},
        "seconds": [10.0 * seed for seed in seeds],
        "commit": commit,
    }


def test_each_seed_keeps_its_scores_in_the_order_of_the_seeds():
    both = joined(result([4, 5], [40.0, 50.0], [4.0, 5.0], "late"), result([0, 7], [0.0, 70.0], [0.0, 7.0], "later"))
    assert both["seeds"] == [0, 4, 5, 7]
    assert both["greedy"]["each"] == [0.0, 40.0, 50.0, 70.0]
    assert both["sampled"]["each"] == [-1.0, 39.0, 49.0, 69.0]
    assert both["total_reward_ma"]["each"] == [0.0, 4.0, 5.0, 7.0]
    assert both["seconds"] == [0.0, 40.0, 50.0, 70.0]
    assert both["greedy"]["point"] == pytest.approx(40.0)
    assert both["set"] == ["agent.algorithm.gamma=0.9"]


def test_a_measure_that_one_part_lacks_is_left_out_and_parts_add_up():
    both = joined(result([0], [1.0], [1.0], "a"), result([1], [2.0], None, "b"))
    assert both["total_reward_ma"] is None
    three = joined(both, result([2], [3.0], [3.0], "c"))
    assert [(part["seeds"], part["commit"]) for part in three["parts"]] == [([0], "a"), ([1], "b"), ([2], "c")]
