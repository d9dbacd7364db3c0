"""ActorCritic, Reinforce and SARSA."""

from __future__ import annotations

from typing import Any

import pytest

from operant.spec.schema import Spec
from tests.unit.spec.dialects.slm.conftest import native, refused, spec_of

NET = {
    "type": "MLPNet",
    "shared": False,
    "hid_layers": [64],
    "hid_layers_activation": "tanh",
    "init_fn": "orthogonal_",
    "actor_init_std": 0.02,
    "critic_init_std": 0.5,
    "clip_grad_val": 0.5,
    "use_same_optim": False,
    "loss_spec": {"name": "MSELoss"},
    "actor_optim_spec": {"name": "RMSprop", "lr": 1e-3, "alpha": 0.95},
    "critic_optim_spec": {"name": "RMSprop", "lr": 3e-3, "alpha": 0.95},
}
ONE = {
    "type": "MLPNet",
    "hid_layers": [64],
    "hid_layers_activation": "relu",
    "optim_spec": {"name": "Adam", "lr": 0.01},
}
A2C = {
    "name": "ActorCritic",
    "action_pdtype": "default",
    "action_policy": "default",
    "explore_var_spec": None,
    "gamma": 0.98,
    "lam": 0.9,
    "num_step_returns": None,
    "val_loss_coef": 0.5,
    "training_frequency": 16,
}
REINFORCE = {"name": "Reinforce", "gamma": 0.99, "center_return": True, "training_frequency": 3}
SARSA = {
    "name": "SARSA",
    "action_pdtype": "Argmax",
    "action_policy": "epsilon_greedy",
    "explore_var_spec": {"name": "linear_decay", "start_val": 1.0, "end_val": 0.1, "start_step": 0, "end_step": 5000},
    "gamma": 0.99,
    "training_frequency": 32,
}
STEPS, EPISODES = {"name": "OnPolicyBatchReplay"}, {"name": "OnPolicyReplay"}


def a2c(**changes: Any) -> dict[str, Any]:
    return spec_of({**A2C, **changes}, STEPS, NET)


def test_a2c_says_all_that_slm_lab_does() -> None:
    data, remarks = native(a2c())
    assert data["agent"]["algorithm"] == {
        "name": "a2c",
        "gamma": 0.98,
        "val_loss_coef": 0.5,
        "normalize_advantages": True,
        "entropy_coef": 0.0,
        "lam": 0.9,
        "training_frequency": 16,
    }
    net = data["agent"]["net"]
    assert (net["actor_gain"], net["critic_gain"], net["shared"]) == (0.02, 0.5, False)
    optimizer = net["optimizer"]
    assert (optimizer["name"], optimizer["lr"], optimizer["critic_lr"], optimizer["alpha"]) == (
        "rmsprop",
        1e-3,
        3e-3,
        0.95,
    )
    assert any("actor_init_std: takes effect here" in each for each in remarks)
    Spec.model_validate(data)


def test_returns_of_so_many_steps_and_plain_ones() -> None:
    data, remarks = native(a2c(lam=None, num_step_returns=5))
    assert (data["agent"]["algorithm"].get("lam"), data["agent"]["algorithm"]["num_step_returns"]) == (None, 5)
    assert data["agent"]["algorithm"]["training_frequency"] == 5, "SLM-Lab trains every num_step_returns"
    assert any("training_frequency: becomes 5" in each for each in remarks)
    data, remarks = native(a2c(lam=None))
    assert data["agent"]["algorithm"]["lam"] == 1.0
    assert any("plain returns" in each for each in remarks)


@pytest.mark.parametrize(
    ("key", "value"),
    [("policy_loss_coef", 0.5), ("action_policy", "boltzmann"), ("action_pdtype", "Beta")],
)
def test_what_a2c_has_not_is_named(key: str, value: Any) -> None:
    assert f"agent.algorithm.{key}" in refused(a2c(**{key: value}))


def test_updates_by_whole_episodes() -> None:
    for algorithm, net in ((A2C, NET), (SARSA, ONE)):
        data, remarks = native(spec_of({**algorithm, "training_frequency": 2}, EPISODES, net))
        assert data["agent"]["algorithm"]["training_episodes"] == 8, "of each of 4 environments"
        assert any("2 x 4 environments" in each for each in remarks)
        Spec.model_validate(data)
    data, _ = native(spec_of(REINFORCE, EPISODES, ONE, num_envs=1))
    assert data["agent"]["algorithm"] == {
        "name": "reinforce", "gamma": 0.99, "entropy_coef": 0.0, "training_frequency": 3
    }  # fmt: skip
    Spec.model_validate(data)


def test_reinforce_may_learn_from_steps_or_from_the_best_episodes() -> None:
    data, _ = native(spec_of({**REINFORCE, "training_frequency": 512}, STEPS, ONE))
    assert data["agent"]["algorithm"]["time_horizon"] == 512
    elite = {"name": "OnPolicyCrossEntropy", "cross_entropy": 0.8}
    data, _ = native(spec_of(REINFORCE, elite, ONE))
    assert (data["agent"]["algorithm"]["elite_fraction"], data["agent"]["algorithm"]["training_frequency"]) == (0.2, 12)


def test_sarsa_says_all_that_slm_lab_does() -> None:
    data, _ = native(spec_of(SARSA, STEPS, ONE))
    assert data["agent"]["algorithm"] == {
        "name": "sarsa",
        "gamma": 0.99,
        "epsilon": {"start": 1.0, "end": 0.1, "frames": 5000},
        "training_frequency": 32,
        "loss": "mse",
    }
    assert "memory" not in data["agent"]
    Spec.model_validate(data)
