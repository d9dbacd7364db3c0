from __future__ import annotations

import inspect
from typing import Any

import pytest

from operant.spec.dialects.slm.optimisers import TORCH
from operant.spec.settings.optimizers import TAKES, OptimizerSpec
from operant.spec.settings.schedulers import StepLRSpec
from tests.unit.spec.dialects.slm.conftest import ABSENT, Changed, refusal

N = "agent.net"


def optimiser(loader: Changed, changes: dict[str, Any]) -> OptimizerSpec:
    return loader(changes).spec.agent.net.optimizer


@pytest.mark.parametrize(
    ("spec", "name", "lr", "eps", "decay"),
    [
        ({"name": "Adam"}, "adam", 1e-3, 1e-8, 0.0),
        ({"name": "AdamW", "lr": 3e-4, "eps": 1e-5}, "adamw", 3e-4, 1e-5, 0.01),
        ({"name": "RMSprop", "lr": 7e-4, "weight_decay": 0.1}, "rmsprop", 7e-4, 1e-8, 0.1),
        ({"name": "SGD", "lr": 0.1, "momentum": 0}, "sgd", 0.1, 1e-5, 0.0),
    ],
)
def test_torch_defaults_are_written_out(
    dqn: Changed, spec: dict[str, Any], name: str, lr: float, eps: float, decay: float
) -> None:
    found = optimiser(dqn, {f"{N}.optim_spec": spec})
    assert (found.name, found.lr, found.eps, found.weight_decay) == (name, lr, eps, decay)


def test_settings_of_torch_are_taken_over(dqn: Changed) -> None:
    found = optimiser(dqn, {f"{N}.optim_spec": {"name": "Adam", "betas": [0.5, 0.9], "amsgrad": True}})
    assert (found.betas, found.amsgrad) == ((0.5, 0.9), True)
    found = optimiser(dqn, {f"{N}.optim_spec": {"name": "SGD", "momentum": 0.9, "nesterov": True}})
    assert (found.momentum, found.nesterov) == (0.9, True)
    found = optimiser(dqn, {f"{N}.optim_spec": {"name": "Adadelta", "rho": 0.8}})
    assert (found.name, found.lr, found.eps, found.rho) == ("adadelta", 1.0, 1e-6, 0.8)


def test_every_optimiser_of_torch_has_torchs_defaults() -> None:
    torch = pytest.importorskip("torch.optim")
    assert {each["name"] for each in TORCH.values()} == set(TAKES)
    for name, ours in TORCH.items():
        told = {key: each.default for key, each in inspect.signature(getattr(torch, name)).parameters.items()}
        assert ours["lr"] == told["lr"]
        assert ours.get("eps") == told.get("eps")
        assert ours.get("weight_decay", 0) == told.get("weight_decay", 0)


@pytest.mark.parametrize("spec", [{"name": "Lookahead", "lr": 1e-3}, {"name": "Adam", "foo": 1}])
def test_other_optimisers_are_refused(dqn: Changed, spec: dict[str, Any]) -> None:
    assert f"{N}.optim_spec." in refusal(dqn, {f"{N}.optim_spec": spec})


def test_a_shared_optimiser_is_one_of_one_process(dqn: Changed) -> None:
    loaded = dqn({f"{N}.optim_spec": {"name": "GlobalAdam", "lr": 1e-3}})
    assert loaded.spec.agent.net.optimizer.name == "adam"
    assert f"{N}.optim_spec.name" in [remark.key for remark in loaded.remarks]


def test_actor_and_critic_may_differ_in_their_rate_only(ppo: Changed) -> None:
    assert "differs from the actor's" in refusal(ppo, {f"{N}.critic_optim_spec": {"name": "RMSprop", "lr": 1e-3}})


@pytest.mark.parametrize("key", ["shared", "use_same_optim"])
def test_one_optimiser_for_both_is_the_actors(ppo: Changed, key: str) -> None:
    loaded = ppo({f"{N}.{key}": True})
    assert loaded.spec.agent.net.optimizer.critic_lr is None
    assert f"{N}.critic_optim_spec" in [remark.key for remark in loaded.remarks]
    assert loaded.spec.agent.net.optimizer.clip_each is (key == "use_same_optim")


def test_one_that_nobody_uses_is_remarked_on(ppo: Changed) -> None:
    loaded = ppo({f"{N}.optim_spec": {"name": "SGD", "lr": 0.5}})
    assert loaded.spec == ppo().spec
    assert f"{N}.optim_spec" in [remark.key for remark in loaded.remarks]


def test_no_limit_on_gradients(ppo: Changed) -> None:
    found = optimiser(ppo, {f"{N}.clip_grad_val": ABSENT})
    assert (found.clip_grad_norm, found.clip_each) == (None, False)


@pytest.mark.parametrize(("frame", "left"), [(200_000, 0.0), (400_000, 0.5)])
def test_a_learning_rate_that_falls_to_zero(ppo: Changed, frame: int, left: float) -> None:
    assert optimiser(ppo, {f"{N}.lr_scheduler_spec": {"name": "LinearToZero", "frame": frame}}).lr_end_fraction == left


def test_schedulers_of_torch_are_taken_over(ppo: Changed) -> None:
    spec = {"name": "StepLR", "step_size": 10, "gamma": 0.5, "last_epoch": -1}
    assert optimiser(ppo, {f"{N}.lr_scheduler_spec": spec}).scheduler == StepLRSpec(step_size=10, gamma=0.5)


@pytest.mark.parametrize(
    "spec", [{"name": "LinearToZero", "frame": 100_000}, {"name": "Slowly"}, {"name": "StepLR", "steps": 10}]
)
def test_other_schedulers_are_refused(ppo: Changed, spec: dict[str, Any]) -> None:
    assert f"{N}.lr_scheduler_spec." in refusal(ppo, {f"{N}.lr_scheduler_spec": spec})
