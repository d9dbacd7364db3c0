"""Minibatches: every completion of a round has the same influence, whichever gradient step it lands in."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("transformers")

from operant.engines.language.learning.samples import TrainingSample, minibatches
from operant.engines.language.policy.batching import Sample
from tests.oracle.language_rounds import assert_same, context_of, gradients, played, spec_of

REWARDS = [[1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]] * 4 + [[0.0], []]
"""33 answers, of rounds of 48."""


@given(st.integers(1, 300), st.integers(1, 300))
def test_steps_are_near_equal_and_have_every_answer_once(count: int, size: int) -> None:
    answers = [[TrainingSample(Sample((number,), (0,)), (0.0,), 1.0)] for number in range(count)]
    steps = minibatches(answers, size)
    sizes = [len(step) for step in steps]
    assert [sample.tokens.prompt[0] for step in steps for sample in step] == list(range(count))
    assert max(sizes) - min(sizes) <= 1
    assert len(steps) <= -(-count // size), "never more steps than staleness reckons with"
    assert len(steps) == 1 or abs(count / len(steps) - size) <= abs(count / (len(steps) - 1) - size) + size


def test_33_answers_in_minibatches_of_16_are_16_and_17() -> None:
    answers = [[TrainingSample(Sample((0,), (0,)), (0.0,), 1.0)] for _ in range(33)]
    assert [len(step) for step in minibatches(answers, 16)] == [16, 17]


@pytest.mark.parametrize("aggregate", ["sequence_mean", "sequence_sum", "token_mean", "constant"])
def test_the_steps_of_a_ragged_round_add_up_to_the_mean_over_all_its_answers(aggregate: str) -> None:
    settings = {"name": "grpo", "aggregate": aggregate, "zero_variance": "keep", "entropy_coef": 0.1}
    with context_of(spec_of(REWARDS, **settings, minibatch_size=16)) as context:
        groups = played(context, REWARDS)
        apart = gradients(context, groups)
    with context_of(spec_of(REWARDS, **settings)) as context:
        (whole,) = gradients(context, groups)
    assert len(apart) == 2
    total = {name: torch.stack([step[name] for step in apart]).sum(0) / len(apart) for name in whole}
    assert_same(total, whole)
