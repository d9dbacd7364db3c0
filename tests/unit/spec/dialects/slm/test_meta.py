from __future__ import annotations

import pytest

from tests.unit.spec.dialects.slm.conftest import ABSENT, Changed, refusal


def test_rigorous_evaluation_keeps_its_frequency(ppo: Changed) -> None:
    assert ppo({"meta.rigorous_eval": 4}).spec.meta.eval_frequency == 500


def test_a_long_run_is_evaluated_and_saved_twenty_times(dqn: Changed) -> None:
    meta = dqn().spec.meta
    assert (meta.eval_frequency, meta.save_frequency) == (15_000, 15_000)


def test_the_default_log_frequency_is_that_of_slm_lab(ppo: Changed) -> None:
    assert ppo({"meta.log_frequency": ABSENT}).spec.meta.log_frequency == 10_000


@pytest.mark.parametrize("kind", ["synced", "shared"])
def test_shared_weights_are_refused(ppo: Changed, kind: str) -> None:
    assert f'meta.distributed = "{kind}" has no counterpart' in refusal(ppo, {"meta.distributed": kind})


def test_a_key_that_is_not_understood_is_refused_with_the_nearest_one(ppo: Changed) -> None:
    said = refusal(ppo, {"meta.log_frequncy": 100})
    assert "meta.log_frequncy = 100 is not a key that is understood here" in said
    assert "did you mean log_frequency?" in said
