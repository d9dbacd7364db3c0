"""Completions of other weights than the trainer's: each token is weighed by how likely the trainer finds it now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

pytest.importorskip("transformers")

from operant.engines.language.generation.generator import Step
from operant.engines.language.rollouts.types import Group
from tests.oracle.language_rounds import assert_same, context_of, gradients, played, spec_of, weighted

REWARDS = [[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0]]
RATIOS = (0.11, 1.1, 0.9, 4.0, 1.0)
STALE = {"name": "grpo", "staleness": 4, "aggregate": "sequence_sum", "scale": "none"}


def aged(groups: Sequence[Group], ratios: Sequence[Sequence[float]]) -> list[Group]:
    """The groups as if a generator had drawn them whose probabilities the trainer has since changed by `ratios`."""
    rows = iter(ratios)

    def changed(step: Step) -> Step:
        said = step.completion
        moved = tuple(float(old - np.log(ratio)) for old, ratio in zip(said.logprobs, next(rows), strict=True))
        return Step(step.prompt, replace(said, logprobs=moved))

    return [
        replace(group, answers=tuple(replace(each, steps=(changed(each.steps[0]),)) for each in group.answers))
        for group in groups
    ]


def weights_of(**algorithm: Any) -> None:
    """Hold the gradient of stale completions to that of `weigh(ratio, advantage)`, token by token."""
    weigh = algorithm.pop("weigh")
    with context_of(spec_of(REWARDS, **STALE, **algorithm)) as context:
        fresh = played(context, REWARDS)
        answers = [answer for group in fresh for answer in group.answers]
        ratios = [[RATIOS[(number + place) % 5] for place in range(each.length)] for number, each in enumerate(answers)]
        centered = [reward - np.mean(row) for row in REWARDS for reward in row]
        wanted = [
            [weigh(ratio, advantage) * advantage / len(answers) for ratio in row]
            for row, advantage in zip(ratios, centered, strict=True)
        ]
        (found,) = gradients(context, aged(fresh, ratios))
        assert_same(found, weighted(context, fresh, wanted))


def clipped(ratio: float, advantage: float) -> float:
    """PPO: nothing for a token that has gone 20 % in its advantage's direction already, else the true ratio."""
    return 0.0 if (advantage > 0 and ratio > 1.2) or (advantage < 0 and ratio < 0.8) else ratio


def test_by_default_a_stale_token_has_its_true_ratio_and_is_clipped_by_it() -> None:
    weights_of(weigh=clipped)


def test_reinforce_weighs_by_the_true_ratio() -> None:
    weights_of(loss="reinforce", weigh=lambda ratio, _: ratio)


def test_cispo_weighs_by_the_true_ratio_up_to_its_limit() -> None:
    weights_of(loss="cispo", clip_high=0.5, weigh=lambda ratio, _: min(ratio, 1.5))


def test_truncate_weighs_beside_the_ratio_of_the_update() -> None:
    weights_of(importance="truncate", weigh=lambda ratio, _: min(ratio, 2.0))


def test_icepop_weighs_what_it_does_not_mask() -> None:
    weights_of(importance="icepop", loss="reinforce", weigh=lambda ratio, _: ratio if 0.5 <= ratio <= 2.0 else 0.0)


def compared(**algorithm: Any) -> str:
    return spec_of(REWARDS, name="grpo", **algorithm).agent.algorithm.compares_with  # pyright: ignore[reportAttributeAccessIssue]


def test_who_is_compared_with() -> None:
    assert compared() == "trainer"
    assert compared(staleness=1) == "generator"
    assert compared(staleness=1, importance="truncate") == "trainer"
    assert compared(importance="dppo") == compared(importance="icepop") == "generator"
    assert compared(old_logprobs="generator") == "generator"


@pytest.mark.parametrize(
    ("algorithm", "reason"),
    [
        ({"staleness": 1, "old_logprobs": "trainer"}, "would count in full"),
        ({"importance": "icepop", "old_logprobs": "trainer"}, "leaves the others with weight 1"),
        ({"importance": "truncate", "old_logprobs": "generator"}, "are its weights already"),
    ],
)
def test_what_leaves_stale_tokens_unweighed_or_weighs_them_twice_is_refused(
    algorithm: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValidationError, match=reason):
        spec_of(REWARDS, name="grpo", **algorithm)
