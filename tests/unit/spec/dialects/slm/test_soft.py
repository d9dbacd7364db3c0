"""SoftActorCritic and CrossQ."""

from __future__ import annotations

from typing import Any

import pytest

from operant.spec.schema import Spec
from tests.unit.spec.dialects.slm.conftest import native, refused, spec_of

REPLAY = {"name": "Replay", "batch_size": 64, "max_size": 5000, "use_cer": True}
ADAM = {"name": "Adam", "lr": 3e-4, "betas": [0.5, 0.999]}
NET = {
    "type": "MLPNet",
    "hid_layers": [32, 32],
    "hid_layers_activation": "relu",
    "clip_grad_val": None,
    "loss_spec": {"name": "MSELoss"},
    "optim_spec": ADAM,
}
TARGET = {"update_type": "polyak", "update_frequency": 1, "polyak_coef": 0.01}
SAC = {"name": "SoftActorCritic", "action_pdtype": "Normal", "gamma": 0.98, "training_frequency": 1}
RENORM = {"LazyBatchRenorm1d": {"momentum": 0.02, "eps": 0.001, "warmup_steps": 100}}
WIRING = {"input": "x", "modules": {"body": ["x"]}, "output": "body"}


def sac(net: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    return spec_of({**SAC, **changes}, REPLAY, {**NET, **TARGET, **(net or {})}, name="Pendulum-v1")


def crossq(layers: list[Any], **changes: Any) -> dict[str, Any]:
    data = spec_of({**SAC, "name": "CrossQ", "policy_delay": 3, **changes}, REPLAY, NET)
    graph = {"modules": {"body": {"Sequential": layers}}, "graph": WIRING}
    critic = {"type": "TorchArcNet", "arc": graph, "clip_grad_val": None, "optim_spec": {**ADAM, "lr": 1e-3}}
    data["agent"]["critic_net"] = critic
    return data


def test_sac_says_all_that_slm_lab_does() -> None:
    data, _ = native(sac())
    algorithm = data["agent"]["algorithm"]
    assert (algorithm["gamma"], algorithm["polyak"], algorithm["training_iter"]) == (0.98, 0.01, 4)
    assert (algorithm["training_frequency"], algorithm["training_start"]) == (4, 1000)
    assert "entropy_scale" not in algorithm
    assert data["agent"]["memory"] == {"name": "replay", "batch_size": 64, "max_size": 5000, "combined": True}
    optimizer = data["agent"]["net"]["optimizer"]
    assert optimizer["betas"] == [0.5, 0.999]
    assert "clip_each" not in optimizer
    Spec.model_validate(data)


def test_a_fixed_temperature_is_fixed() -> None:
    algorithm = native(sac(fixed_alpha=0.2))[0]["agent"]["algorithm"]
    assert (algorithm["learn_temperature"], algorithm["temperature"]) == (False, 0.2)


@pytest.mark.parametrize(("kind", "env"), [("Categorical", "Anything-v0"), ("default", "CartPole-v1")])
def test_the_target_entropy_of_discrete_actions_is_theirs(kind: str, env: str) -> None:
    data = sac(action_pdtype=kind)
    data["env"]["name"] = env
    algorithm, remarks = native(data)[0]["agent"]["algorithm"], native(data)[1]
    wanted = algorithm.get("discrete_entropy", round(algorithm.get("entropy_scale", 1) * 0.98, 4))
    assert wanted == 0.6
    assert any("0.6 log n" in each for each in remarks)
    assert algorithm["critic_reduction"] == "mean"


@pytest.mark.parametrize("key", ["symlog", "spectral_norm", "entropy_penalty_coef", "alpha_anneal_frames", "alpha_lr"])
def test_what_sac_has_not_is_named(key: str) -> None:
    assert f"agent.algorithm.{key}" in refused(sac(None, **{key: True}))


def test_other_targets_and_losses_are_named() -> None:
    assert "agent.net.update_type" in refused(sac({"update_type": "replace"}))
    assert "agent.net.loss_spec.name" in refused(sac({"loss_spec": {"name": "L1Loss"}}))
    assert native(sac({"loss_spec": {"name": "SmoothL1Loss"}}))[0]["agent"]["algorithm"]["loss"] == "huber"


def test_crossq_takes_its_critics_and_limits_over() -> None:
    layers = [
        {"LazyLinear": {"out_features": 128}},
        RENORM,
        "ReLU",
        {"LazyLinear": {"out_features": 64}},
        RENORM,
        "ReLU",
    ]
    data, _ = native(crossq(layers, log_alpha_max=0.5))
    algorithm = data["agent"]["algorithm"]
    assert algorithm["name"] == "crossq"
    assert (algorithm["critic_hidden"], algorithm["policy_delay"]) == ([128, 64], 3)
    assert (algorithm["renorm_momentum"], algorithm["renorm_warm_up"]) == (0.02, 100)
    assert (algorithm["temperature_min"], algorithm["temperature_max"]) == (0.00673795, 1.64872)
    assert data["agent"]["net"]["optimizer"]["critic_lr"] == 1e-3


@pytest.mark.parametrize(
    ("layers", "why"),
    [
        ([{"LazyLinear": {"out_features": 8}}, {"LazyBatchNorm1d": {}}, "ReLU"], "without counterpart"),
    ],
)
def test_other_critics_are_refused(layers: list[Any], why: str) -> None:
    assert why in refused(crossq(layers))


def test_renormalised_layers_are_for_critics_only() -> None:
    data = sac(
        {
            "type": "TorchArcNet",
            "arc": crossq([{"LazyLinear": {"out_features": 8}}, RENORM, "ReLU"])["agent"]["critic_net"]["arc"],
        }
    )
    assert "critics of CrossQ only" in refused(data)


def test_critics_need_not_be_renormalised() -> None:
    algorithm = native(crossq([{"LazyLinear": {"out_features": 8}}, "ReLU"]))[0]["agent"]["algorithm"]
    assert (algorithm["batch_renorm"], algorithm["critic_hidden"]) == (False, [8])
    data = crossq([])
    del data["agent"]["critic_net"]
    algorithm, remarks = native(data)[0]["agent"]["algorithm"], native(data)[1]
    assert algorithm["batch_renorm"] is False
    assert any("the critics have the actor's layers" in each for each in remarks)
