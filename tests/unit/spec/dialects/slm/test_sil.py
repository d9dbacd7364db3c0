"""SIL and PPOSIL."""

from __future__ import annotations

from typing import Any

import pytest

from operant.spec.schema import Spec
from tests.unit.spec.dialects.slm.conftest import native, refused, spec_of

NET = {
    "type": "MLPNet",
    "shared": False,
    "hid_layers": [32],
    "hid_layers_activation": "tanh",
    "loss_spec": {"name": "MSELoss"},
    "optim_spec": {"name": "Adam", "lr": 1e-3},
}
IMITATION = {"sil_policy_loss_coef": 0.5, "sil_val_loss_coef": 0.1, "training_batch_iter": 3, "training_iter": 2}
MEMORY = {"name": "OnPolicyBatchReplay", "batch_size": 64, "max_size": 5000, "use_cer": True}
CLIP = {"name": "no_decay", "start_val": 0.2, "end_val": 0.2, "start_step": 0, "end_step": 0}
PPO = {"lam": 0.9, "time_horizon": 64, "minibatch_size": 32, "training_epoch": 4, "clip_eps_spec": CLIP}


def imitating(name: str, replay: str, **settings: Any) -> dict[str, Any]:
    algorithm = {"name": name, "gamma": 0.98, **IMITATION, **settings}
    return spec_of(algorithm, {**MEMORY, "sil_replay_name": replay}, NET)


@pytest.mark.parametrize(
    ("slm", "settings", "name"),
    [("SIL", {"training_frequency": 16, "lam": 0.9}, "sil"), ("PPOSIL", PPO, "ppo_sil")],
)
def test_imitation_is_taken_over_beside_its_algorithm(slm: str, settings: dict[str, Any], name: str) -> None:
    data, remarks = native(imitating(slm, "Replay", **settings))
    spec = Spec.model_validate(data)
    algorithm = data["agent"]["algorithm"]
    assert spec.agent.algorithm.name == name
    assert (algorithm["sil_policy_coef"], algorithm["sil_value_coef"], algorithm["sil_iter"]) == (0.5, 0.1, 6)
    assert (algorithm["gamma"], algorithm["lam"]) == (0.98, 0.9)
    assert data["agent"]["memory"] == {"name": "replay", "batch_size": 64, "max_size": 5000, "combined": True}
    assert not any("SLM-Lab" in remark and "does not read" in remark for remark in remarks)


def test_a_prioritised_replay_stays_one() -> None:
    data, _ = native(imitating("SIL", "PrioritizedReplay", training_frequency=16, lam=0.9))
    assert data["agent"]["memory"]["name"] == "prioritised"
    assert data["agent"]["memory"]["beta"] == 0.0


def test_an_unknown_replay_is_named_with_its_place() -> None:
    assert "agent.memory.sil_replay_name" in refused(imitating("SIL", "Diary", training_frequency=16, lam=0.9))
