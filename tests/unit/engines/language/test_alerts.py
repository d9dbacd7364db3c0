"""What goes wrong quietly is told aloud."""

from __future__ import annotations

from dataclasses import replace

import pytest

from operant.engines.language.alerts import SILENT_ROUNDS, Alerts
from operant.engines.language.build import TrainingContext
from operant.engines.language.rollouts.types import Answer, Group
from operant.envs.text.task import UNPARSED
from operant.errors import RunError


def changed(groups: list[Group], **answer: object) -> list[Group]:
    """Groups whose answers have other fields."""
    return [replace(group, answers=tuple(replace(each, **answer) for each in group.answers)) for group in groups]  # pyright: ignore[reportArgumentType]


def cut_off(answer: Answer) -> Answer:
    """The answer as if its length had ended it."""
    (step,) = answer.steps
    return replace(answer, steps=(replace(step, completion=replace(step.completion, finish="length")),))


def told(context: TrainingContext, groups: list[Group]) -> dict[str, str]:
    events: dict[str, str] = {}
    Alerts(context, events.__setitem__).check_round(groups)
    return events


def test_answers_that_nobody_can_read(context: TrainingContext):
    events = told(context, changed(context.gather(), verdict=UNPARSED, reward=0.0))
    assert "no answer was found in 100% of the completions; one of them: " in events["unparsed"]


def test_answers_that_were_cut_off_name_the_limit(context: TrainingContext):
    cut = [replace(group, answers=tuple(map(cut_off, group.answers))) for group in context.gather()]
    assert "cut off at 4 tokens (env.text.max_tokens)" in told(context, cut)["truncated"]


def test_rewards_that_never_differ(context: TrainingContext):
    groups = context.gather()
    context.tracker.silent_rounds = SILENT_ROUNDS
    assert "nothing was learnt" in told(context, groups)["no_signal"]


def test_a_round_that_could_not_be_scored_stops_the_run(context: TrainingContext):
    failed = [replace(group, answers=(), errors=("the judge broke",)) for group in context.gather()]
    with pytest.raises(RunError, match="the judge broke") as stopped:
        told(context, failed)
    text = context.spec.env.text
    assert text is not None
    options = "".join(f" -a {key}={value}" for key, value in text.arguments.items())
    assert str(stopped.value.remedy).startswith(f"operant tasks validate {context.spec.env.name}{options}    (")


def test_a_generator_that_drifts_stops_the_run(context: TrainingContext):
    alerts = Alerts(context, lambda *_: None)
    alerts.check_mismatch({"mismatch/kl": 0.01})
    with pytest.raises(RunError, match=r"disagree by 0\.7 nats"):
        alerts.check_mismatch({"mismatch/kl": 0.7})
    with pytest.raises(RunError, match="nan"):
        alerts.check_mismatch({"mismatch/kl": float("nan")})
