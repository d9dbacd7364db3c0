"""How often `operant.compare` names a winner where there is none, on run directories as training writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import operant

PAIRS, SEEDS = 200, 5
MOST_WINNERS = 18  # at a chance of 5 % more of 200 come once in a hundred times


@pytest.mark.slow
def test_runs_of_the_same_learner_are_told_apart_no_more_often_than_chance_allows(
    make_trial: Callable[..., Path],
) -> None:
    rng = np.random.default_rng(21)
    winners = 0
    for number in range(PAIRS):
        # Most seeds are solved and some are stuck, as on CartPole.
        scores = np.where(
            rng.random((2, SEEDS)) < 0.3, rng.normal(200, 60, (2, SEEDS)), rng.normal(480, 15, (2, SEEDS))
        )
        sides = [
            make_trial(
                *({"final": float(score), "seed": seed} for seed, score in enumerate(side)),
                stamp=f"20250101-{number:04d}{letter:02d}",
            )
            for letter, side in enumerate(scores)
        ]
        (pair,) = operant.compare(*sides).pairs
        winners += pair.verdict.endswith("better")
    print(f"{winners} winners in {PAIRS} pairs of equals")
    assert winners <= MOST_WINNERS
