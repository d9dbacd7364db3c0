"""What goes wrong quietly is told aloud."""

from __future__ import annotations

from dataclasses import replace

import pytest

from operant.engines.language.alerts import SILENT_ROUNDS, Health
from operant.engines.language.build import Lab
from operant.engines.language.rollouts.single_turn import Answer, Group
from operant.envs.text.task import UNPARSED
from operant.errors import RunError


def changed(groups: list[Group], **answer: object) -> list[Group]:
    """Groups whose answers have other fields."""
    return [replace(group, answers=tuple(replace(each, **answer) for each in group.answers)) for group in groups]  # pyright: ignore[reportArgumentType]


def cut_off(answer: Answer) -> Answer:
    """The answer as if its length had ended it."""
    (step,) = answer.steps
    return replace(answer, steps=(replace(step, completion=replace(step.completion, finish="length")),))


def told(lab: Lab, groups: list[Group]) -> dict[str, str]:
    events: dict[str, str] = {}
    Health(lab, events.__setitem__).look(groups)
    return events


def test_answers_that_nobody_can_read(lab: Lab):
    events = told(lab, changed(lab.gather(), verdict=UNPARSED, reward=0.0))
    assert "no answer was found in 100% of the completions; one of them: " in events["unparsed"]


def test_answers_that_were_cut_off_name_the_limit(lab: Lab):
    cut = [replace(group, answers=tuple(map(cut_off, group.answers))) for group in lab.gather()]
    assert "cut off at 4 tokens (env.text.max_tokens)" in told(lab, cut)["truncated"]


def test_rewards_that_never_differ(lab: Lab):
    groups = lab.gather()
    lab.tracker.silent_rounds = SILENT_ROUNDS
    assert "nothing was learnt" in told(lab, groups)["no_signal"]


def test_a_round_that_could_not_be_judged_stops_the_run(lab: Lab):
    failed = [replace(group, answers=(), errors=("the judge broke",)) for group in lab.gather()]
    with pytest.raises(RunError, match="the judge broke"):
        told(lab, failed)


def test_a_generator_that_drifts_stops_the_run(lab: Lab):
    health = Health(lab, lambda *_: None)
    health.agree({"mismatch/kl": 0.01})
    with pytest.raises(RunError, match=r"disagree by 0\.7 nats"):
        health.agree({"mismatch/kl": 0.7})
    with pytest.raises(RunError, match="nan"):
        health.agree({"mismatch/kl": float("nan")})
