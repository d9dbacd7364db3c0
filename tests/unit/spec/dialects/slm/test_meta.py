from __future__ import annotations

import pytest

from tests.unit.spec.dialects.slm.conftest import ABSENT, Changed


def test_rigorous_evaluation_keeps_its_frequency(ppo: Changed) -> None:
    assert ppo({"meta.rigorous_eval": 4}).spec.meta.eval_frequency == 500


def test_a_long_run_is_evaluated_and_saved_twenty_times(dqn: Changed) -> None:
    meta = dqn().spec.meta
    assert (meta.eval_frequency, meta.save_frequency) == (15_000, 15_000)


def test_the_default_log_frequency_is_that_of_slm_lab(ppo: Changed) -> None:
    assert ppo({"meta.log_frequency": ABSENT}).spec.meta.log_frequency == 10_000


@pytest.mark.parametrize("kind", ["synced", "shared"])
def test_workers_that_share_weights_play_in_step(ppo: Changed, kind: str) -> None:
    loaded = ppo({"meta.distributed": kind, "meta.max_session": 3})
    assert (loaded.spec.env.num_envs, loaded.spec.meta.max_session) == (12, 1)
    assert any("play as 12 environments of one run" in remark.text for remark in loaded.remarks)


def test_a_key_that_slm_lab_does_not_know_is_left_out_with_the_nearest_one(ppo: Changed) -> None:
    loaded = ppo({"meta.log_frequncy": 100})
    said = next(str(remark) for remark in loaded.remarks if "frequncy" in remark.key)
    assert said == "meta.log_frequncy: left out: SLM-Lab reads no such key; did you mean log_frequency?"
    assert loaded.spec == ppo().spec
