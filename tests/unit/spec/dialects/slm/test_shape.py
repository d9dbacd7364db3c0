from __future__ import annotations

from typing import Any

import pytest

from operant.spec.builtin import builtin_names
from operant.spec.dialects.slm.convert import is_slm
from operant.spec.load import load
from tests.unit.spec.dialects.slm.conftest import FILES

SEVERAL = [("ppo_cartpole.json", None), ("dqn_lunar.json", "dqn_lunar"), ("older.json", None)]


@pytest.mark.parametrize(("file", "name"), SEVERAL)
def test_slm_lab_files_are_known_by_their_shape(file: str, name: str | None) -> None:
    assert load(str(FILES / file), name).translated


@pytest.mark.parametrize("name", [name for name, _, _ in builtin_names()][::8])
def test_native_specs_and_what_runs_keep_of_them_are_not_taken_for_one(name: str) -> None:
    loaded = load(name)
    assert not loaded.translated
    assert not is_slm(loaded.spec.model_dump(mode="json"))


@pytest.mark.parametrize(
    "data",
    [
        {"agent": {"algorithm": {"name": "PPO", "gamma": 0.9}}},
        {"agent": {"algorithm": {"name": "DQN"}, "memory": {"name": "replay"}}},
        {"agent": "ppo", "meta": 3},
        {},
        None,
    ],
)
def test_a_native_spec_with_a_slip_stays_native(data: Any) -> None:
    assert not is_slm(data)


@pytest.mark.parametrize(
    "data",
    [
        {"agent": {"algorithm": {"name": "SoftActorCritic"}}},
        {"agent": {"net": {"type": "MLPNet"}}},
        {"agent": {"net": {"optim_spec": {}}}},
        {"agent": {"memory": {"name": "OnPolicyBatchReplay"}}},
        {"agent": [{"algorithm": {"name": "PPO"}}]},
        {"meta": {"distributed": False}},
        {"body": {"num": 1}},
    ],
)
def test_one_sign_is_enough(data: Any) -> None:
    assert is_slm(data)
