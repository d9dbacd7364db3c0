"""Two trials held against each other: a winner only where the seeds allow one."""

from __future__ import annotations

import pytest

from operant.errors import UsageError
from operant.report.compare import compare, render


def trial(make_trial, stamp, *scores):
    return make_trial(*({"final": score, "seed": k} for k, score in enumerate(scores)), stamp=stamp)


@pytest.fixture
def good(make_trial):
    return trial(make_trial, "20250101-000000", 480.0, 490.0, 485.0, 495.0)


def test_a_clear_winner_is_named(make_trial, good):
    verdict = compare(good, trial(make_trial, "20250102-000000", 100.0, 120.0, 110.0, 130.0))
    assert verdict.comparison.verdict == "A better"
    assert verdict.a.mean.point == 487.5
    assert verdict.a.iqm.point == 487.5
    assert "need" not in render(verdict)


def test_overlapping_scores_name_nobody_and_say_how_many_seeds_it_takes(make_trial, good):
    verdict = compare(good, trial(make_trial, "20250102-000000", 484.0, 491.0, 479.0, 496.5))
    assert verdict.comparison.verdict == "no clear difference"
    assert verdict.seeds is not None
    assert verdict.seeds > 100
    assert f"would need {verdict.seeds} seeds each" in render(verdict)


def test_two_seeds_are_too_few_whatever_they_score(make_trial, good):
    verdict = compare(good, trial(make_trial, "20250102-000000", 10.0, 11.0))
    assert verdict.comparison.verdict.startswith("cannot tell")
    assert "would need" not in render(verdict)


def test_different_environments_are_noted(make_trial, good, spec):
    spec["env"]["name"] = "Acrobot-v1"
    other = make_trial({}, {}, spec=spec, stamp="20250103-000000")
    assert "the environments differ: CartPole-v1 and Acrobot-v1" in compare(good, other).notes


def test_a_trial_without_scores_is_refused(make_trial, good):
    with pytest.raises(UsageError, match="no seed of this trial was evaluated yet"):
        compare(good, make_trial({"final": None, "evals": {}}, stamp="20250102-000000"))
