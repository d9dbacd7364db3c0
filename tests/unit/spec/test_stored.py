from __future__ import annotations

from typing import Any

import pytest

from operant.errors import RunError
from operant.spec.fork import changes
from operant.spec.load import load
from operant.spec.schema import Spec
from operant.spec.stored import aged, stored


def test_a_stored_spec_comes_back():
    spec = Spec.model_validate({"name": "mine", "meta": {"seed": 3}})
    assert stored(spec.model_dump(mode="json")) == spec


def test_a_spec_of_another_version_is_refused_by_the_setting_that_is_gone():
    data = Spec().model_dump(mode="json")
    data["env"]["gone"] = 1
    with pytest.raises(RunError, match=r"does not fit this version of Operant: env\.gone") as caught:
        stored(data)
    assert "provenance" in (caught.value.remedy or "")


def of_before(**algorithm: Any) -> dict[str, Any]:
    """The spec of a run of a language model, as it was kept before there was `old_logprobs`."""
    data = Spec.model_validate({"env": {"name": "copy"}, "agent": {"algorithm": {"name": "grpo"}}}).model_dump(
        mode="json"
    )
    data["agent"]["algorithm"] |= algorithm
    del data["agent"]["algorithm"]["old_logprobs"]
    return data


def test_a_stale_run_of_before_goes_on_comparing_with_the_trainer_and_is_told():
    data = of_before(staleness=4, zero_variance="drop")
    algorithm = stored(data).agent.algorithm
    assert (algorithm.compares_with, algorithm.zero_variance) == ("trainer", "drop")  # pyright: ignore[reportAttributeAccessIssue]
    (note,) = aged(data)
    assert "agent.algorithm.old_logprobs = trainer" in note
    assert "goes on with it as it began" in note


def test_what_is_refused_today_can_be_read_of_a_run_and_is_told():
    data = of_before(kl="k1", kl_coef=0.1)
    assert stored(data).agent.algorithm.kl == "k1"  # pyright: ignore[reportAttributeAccessIssue]
    assert [note.split(" has")[0] for note in aged(data)] == ["agent.algorithm.kl = k1"]
    dropped = of_before(credit="reinforce_pp", scale="batch", zero_variance="drop")
    assert stored(dropped).agent.algorithm.zero_variance == "drop"  # pyright: ignore[reportAttributeAccessIssue]
    assert any("zero_variance = drop" in note for note in aged(dropped))
    assert any("over tokens" in note for note in aged(dropped))


def test_a_run_of_today_has_nothing_to_be_told():
    spec = Spec.model_validate({"env": {"name": "copy"}, "agent": {"algorithm": {"name": "rloo", "staleness": 4}}})
    assert aged(spec.model_dump(mode="json")) == []
    assert aged(Spec().model_dump(mode="json")) == []


@pytest.mark.parametrize(("earlier", "today"), [("deep", "torch"), ("fused", "jax")])
def test_an_engine_by_its_earlier_name(earlier: str, today: str):
    before, after = stored({"engine": earlier}), stored({"engine": today})
    assert before == after
    assert before.model_dump()["engine"] == before.engine_name == today
    assert load("ppo_cartpole", overrides=[f"engine={earlier}"]).spec.engine_name == today
    assert changes(before, after) == []
