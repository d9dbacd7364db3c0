from __future__ import annotations

from typing import Any

import pytest

from operant.spec.schedules import Linear
from operant.spec.settings.algorithms import PpoSpec
from tests.unit.spec.dialects.slm.conftest import ABSENT, Changed, refusal

A = "agent.algorithm"
LINE = {"name": "linear_decay", "start_val": 0.2, "end_val": 0.1, "start_step": 0, "end_step": 1000}


def test_every_setting_has_its_counterpart(ppo: Changed) -> None:
    spec = ppo().spec
    assert spec.agent.algorithm == PpoSpec(
        gamma=0.9769,
        lam=0.9112,
        time_horizon=256,
        minibatch_size=128,
        training_epoch=15,
        clip_eps=0.1312,
        entropy_coef=0.0074,
        val_loss_coef=0.6049,
    )
    assert (spec.env.name, spec.env.num_envs, spec.env.max_frame) == ("CartPole-v1", 4, 200_000)
    net, optimizer = spec.agent.net, spec.agent.net.optimizer
    assert (net.hidden, net.activation, net.init, net.shared) == ((64, 64), "tanh", "torch", False)
    assert (optimizer.name, optimizer.lr, optimizer.critic_lr, optimizer.eps) == ("adam", 5.909e-4, 6.352e-4, 1e-8)
    assert (optimizer.clip_grad_norm, optimizer.clip_each) == (0.5, True)
    assert spec.agent.memory is None
    assert (spec.meta.max_session, spec.meta.log_frequency) == (4, 500)


def test_what_slm_lab_leaves_out_is_its_own_default(ppo: Changed) -> None:
    absent = dict.fromkeys((f"{A}.minibatch_size", f"{A}.val_loss_coef", f"{A}.entropy_coef_spec"), ABSENT)
    algorithm = ppo(absent).spec.agent.algorithm
    assert isinstance(algorithm, PpoSpec)
    assert (algorithm.minibatch_size, algorithm.val_loss_coef, algorithm.entropy_coef) == (4, 1.0, 0.0)


def test_values_are_clipped_by_the_range_of_the_policy(ppo: Changed) -> None:
    algorithm = ppo({f"{A}.clip_vloss": True}).spec.agent.algorithm
    assert isinstance(algorithm, PpoSpec)
    assert algorithm.clip_vloss == 0.1312
    # SLM-Lab's clipped loss is 0.5 val_loss_coef max(...).mean(), its unclipped one val_loss_coef mse_loss.
    assert algorithm.val_loss_coef == pytest.approx(0.6049 / 2)
    assert "moving clip_eps" in refusal(ppo, {f"{A}.clip_vloss": True, f"{A}.clip_eps_spec": LINE})


@pytest.mark.parametrize(
    ("key", "value"), [("normalize_v_targets", True), ("symlog", True), ("normalize_advantages", "percentile")]
)
def test_scales_of_returns_are_taken_over(ppo: Changed, key: str, value: Any) -> None:
    assert getattr(ppo({f"{A}.{key}": value}).spec.agent.algorithm, key) == value


def test_a_clip_range_that_falls_to_nothing_ends_just_above_it(ppo: Changed) -> None:
    algorithm = ppo({f"{A}.clip_eps_spec": {**LINE, "end_val": 0.0}}).spec.agent.algorithm
    assert isinstance(algorithm, PpoSpec)
    assert algorithm.clip_eps == Linear(start=0.2, end=1e-6, frames=1000)


def test_the_clip_range_may_move(ppo: Changed) -> None:
    algorithm = ppo({f"{A}.clip_eps_spec": LINE}).spec.agent.algorithm
    assert isinstance(algorithm, PpoSpec)
    assert algorithm.clip_eps == Linear(start=0.2, end=0.1, frames=1000)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (f"{A}.normalize_advantages", "sometimes"),
        (f"{A}.action_pdtype", "Beta"),
        (f"{A}.action_policy", "random"),
        ("agent.memory.name", "Replay"),
        ("agent.net.loss_spec", {"name": "L1Loss"}),
    ],
)
def test_what_would_change_results_is_refused_where_it_stands(ppo: Changed, key: str, value: Any) -> None:
    said = refusal(ppo, {key: value})
    assert said.startswith("slm.json:")
    assert key in said
    assert "no counterpart" in said
    assert "operant convert slm.json ppo_cartpole --lossy" in said
    lost = [remark for remark in ppo({key: value}, lossy=True).remarks if "LOST" in remark.text]
    assert [remark.key.startswith(key) for remark in lost] == [True]


@pytest.mark.parametrize(
    "key", [f"{A}.clip_val_loss", f"{A}.training_frequency", f"{A}.num_step_returns", f"{A}.policy_loss_coef"]
)
def test_what_slm_lab_never_reads_is_dropped_with_a_remark(ppo: Changed, key: str) -> None:
    loaded = ppo({key: 8})
    assert loaded.spec == ppo().spec
    assert key in [remark.key for remark in loaded.remarks]


def test_a_missing_setting_is_named(ppo: Changed) -> None:
    assert f"{A}.gamma is missing" in refusal(ppo, {f"{A}.gamma": ABSENT})


def test_a_horizon_is_rounded_as_slm_lab_does(ppo: Changed) -> None:
    loaded = ppo({f"{A}.time_horizon": 250, f"{A}.minibatch_size": 81})
    assert isinstance(loaded.spec.agent.algorithm, PpoSpec)
    assert (loaded.spec.agent.algorithm.time_horizon, loaded.spec.agent.algorithm.minibatch_size) == (252, 84)
    assert "252" in next(str(remark) for remark in loaded.remarks if "time_horizon" in remark.key)


def test_whole_episodes_and_a_huber_loss(ppo: Changed) -> None:
    changes = {"agent.memory.name": "OnPolicyReplay", f"{A}.training_frequency": 2, f"{A}.time_horizon": ABSENT}
    algorithm = ppo({**changes, "agent.net.loss_spec": {"name": "SmoothL1Loss"}}).spec.agent.algorithm
    assert isinstance(algorithm, PpoSpec)
    assert (algorithm.training_episodes, algorithm.val_loss) == (8, "huber")


def test_native_checks_point_into_the_slm_lab_file(ppo: Changed) -> None:
    said = refusal(ppo, {f"{A}.minibatch_size": 100})
    assert "does not divide num_envs x time_horizon = 4 x 256 = 1024" in said
    assert '"minibatch_size": 100' in said
    assert "agent.net.optimizer.critic_lr" in refusal(ppo, {"agent.net.critic_optim_spec.lr": "fast"})
