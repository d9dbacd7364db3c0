"""Learning from texts of much older weights finds the best answer, not the most common one above the average.

Without weights a stale batch pulls by how often the generator wrote an answer times its advantage, however likely the
trainer finds it by then: a common answer that is fair drives a rare one that is best out for good. The policy is a
table and gradients are exact expectations, so there is no luck in this.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from operant.engines.language.learning.losses import LossSettings, loss_settings
from operant.spec.settings.language_algorithms import GrpoSpec
from tests.oracle.language_worlds import Policies, expected_gradient, world

HERE = world(longest=1)
BAD, FAIR, BEST = range(3)
WORTH = torch.tensor([0.0, 0.6, 1.0], dtype=torch.float64)
START = torch.tensor([[0.24, 0.70, 0.06]], dtype=torch.float64).log()
AGE, REFRESHES, RATE = 10, 30, 20.0


def learnt(loss: LossSettings, compares_with: str) -> float:
    """The mean reward after training on texts that are up to `AGE` updates old."""
    trained = START.clone()
    for _ in range(REFRESHES):
        wrote = trained.clone()
        chances = wrote.softmax(-1)[0]
        advantages = WORTH - (chances * WORTH).sum()
        for _ in range(AGE):
            old = wrote if compares_with == "generator" else trained
            trained = trained - RATE * expected_gradient(HERE, Policies(trained, old, wrote), advantages, loss)
    return float((trained.softmax(-1)[0] * WORTH).sum())


def loss_of(settings: GrpoSpec) -> LossSettings:
    return replace(loss_settings(settings, 0), mean="sum")


@pytest.mark.parametrize(
    "algorithm", [{}, {"loss": "reinforce"}, {"loss": "cispo", "clip_high": 4.0}, {"importance": "truncate"}], ids=str
)
def test_the_best_answer_is_found_under_staleness(algorithm: dict[str, Any]) -> None:
    settings = GrpoSpec(staleness=AGE, **algorithm)
    assert learnt(loss_of(settings), settings.compares_with) > 0.95


def test_ratios_to_the_trainer_alone_which_specs_refuse_would_settle_for_the_common_one() -> None:
    assert learnt(loss_of(GrpoSpec(staleness=AGE)), "trainer") == pytest.approx(0.6, abs=0.01)
