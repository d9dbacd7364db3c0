"""Planning from Python: stated rates, and lengths from their mean."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from operant.api.plan import StatedRates, lengths_of_mean, plan
from operant.errors import UsageError
from operant.planning.workload import Machines
from operant.run.rates import Rates

BARE = Rates(0.0, 0.0, 0.0, 0.0, lengths=(1,), weight_bytes=0)
STATED = StatedRates(8000.0, 0.02, 12_000.0, 0.05, 1500.0, 15 * 10**9)


@pytest.mark.parametrize(("mean", "longest"), [(20.0, None), (1500.0, 8192), (60.0, 64)])
def test_lengths_have_the_mean_and_the_limit(mean: float, longest: int | None) -> None:
    lengths = lengths_of_mean(mean, longest)
    assert np.mean(lengths) == pytest.approx(mean, rel=0.02)
    assert max(lengths) <= (longest or 10**9)
    assert max(lengths) > 1.05 * mean


def test_a_stated_rate_is_that_of_all_slots() -> None:
    rates = STATED.over(BARE, slots=256, longest=8192)
    assert rates.tokens_per_second(256) == pytest.approx(8000)
    assert rates.step_seconds == 0.02
    assert rates.tokens_per_second(1) < 1 / 0.02


def test_rates_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(UsageError, match="more than 4 slots write"):
        STATED.over(BARE, slots=4, longest=None)


def test_what_is_not_stated_stays() -> None:
    measured = replace(BARE, token_seconds=0.5, step_seconds=0.25, verify_seconds=0.125, weight_bytes=7)
    found = StatedRates(verify_seconds=1.0).over(measured, slots=2, longest=None)
    assert found == replace(measured, verify_seconds=1.0)


def test_a_spec_is_planned_with_stated_rates() -> None:
    found = plan("grpo_tiny", nodes=2, gpus=2, machines=Machines(price=3.6), stated=STATED)
    assert {outcome.split.trainers for outcome in found.outcomes} == {1, 2, 3, 4}
    best = found.chosen
    assert best.split.supported
    assert found.dollars(best) == pytest.approx(found.seconds(best) * 4 * 3.6 / 3600)
    assert found.seconds(best) == pytest.approx(350 * best.round_seconds)
    assert found.as_dict()["best"]["samples_per_second"] >= best.samples_per_second


def test_only_what_generates_and_verifies_is_planned() -> None:
    with pytest.raises(UsageError, match="no generators and verifiers"):
        plan("ppo_cartpole", stated=STATED)


def test_no_machines_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="0 nodes"):
        plan("grpo_tiny", nodes=0, stated=STATED)


def test_rates_that_cannot_be_measured_here_can_be_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise UsageError("training would take 28.0 GiB", place="spec", remedy="a smaller model")

    monkeypatch.setattr("operant.api.specs.validate", refuse)
    with pytest.raises(UsageError, match=r"cannot be measured here: training would take 28\.0 GiB") as told:
        plan("grpo_tiny", nodes=1)
    assert "--mean-length and --weights" in str(told.value.remedy)
