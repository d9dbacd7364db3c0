"""How many processes and trials fit on a machine, and which GPUs each sees."""

from __future__ import annotations

import pytest

from operant.errors import UsageError
from operant.hpo.resources import DEFAULT_LANES, VISIBLE, lanes, slots
from operant.spec.schema import Spec
from operant.spec.settings.search import SearchResourcesSpec


def _gpus(found: list) -> list[str | None]:
    return [slot.environment.get(VISIBLE) for slot in found]


def test_cores_are_divided_among_processes() -> None:
    assert len(slots(SearchResourcesSpec(cpu=2), cores=7)) == 3
    assert len(slots(SearchResourcesSpec(cpu=4), cores=2)) == 1
    assert _gpus(slots(SearchResourcesSpec(), cores=1)) == [None]


def test_fractions_of_gpus_are_dealt_in_turn() -> None:
    found = slots(SearchResourcesSpec(gpu=0.5), cores=16, gpus=["2", "5"])
    assert _gpus(found) == ["2", "5", "2", "5"]
    assert _gpus(slots(SearchResourcesSpec(gpu=0.3), cores=16, gpus=["0"])) == ["0", "0", "0"]


def test_whole_gpus_are_not_shared() -> None:
    assert _gpus(slots(SearchResourcesSpec(gpu=2), cores=16, gpus=["0", "1", "2", "3", "4"])) == ["0,1", "2,3"]


def test_gpus_that_are_not_there_are_asked_for_in_vain() -> None:
    with pytest.raises(UsageError, match="shows 0 GPUs"):
        slots(SearchResourcesSpec(gpu=0.5), gpus=[])


def test_a_process_trains_several_trials_on_the_jax_engine_only() -> None:
    assert lanes(Spec(engine="jax")) == DEFAULT_LANES
    asked = {"engine": "jax", "meta": {"search_resources": {"lanes": 3}}}
    assert lanes(Spec.model_validate(asked)) == 3
    assert lanes(Spec(engine="torch")) == 1
    with pytest.raises(ValueError, match="has no effect"):
        Spec.model_validate({**asked, "engine": "torch"})
