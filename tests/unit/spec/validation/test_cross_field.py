from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from operant.spec.reading.document import put
from operant.spec.schema import Spec
from operant.spec.validation.conflict import Conflict, closest, near_divisors, near_multiples

PPO: dict[str, Any] = {"agent": {"algorithm": {"name": "ppo"}}}
DQN: dict[str, Any] = {"agent": {"algorithm": {"name": "dqn"}}}
REINFORCE: dict[str, Any] = {"agent": {"algorithm": {"name": "reinforce"}}}
SARSA: dict[str, Any] = {"agent": {"algorithm": {"name": "sarsa"}}}
SAC: dict[str, Any] = {"agent": {"algorithm": {"name": "sac"}}}
CROSSQ: dict[str, Any] = {"agent": {"algorithm": {"name": "crossq"}}}
A2C: dict[str, Any] = {"agent": {"algorithm": {"name": "a2c"}}}


def conflicts(base: dict[str, Any], settings: dict[str, Any]) -> list[Conflict]:
    """What does not fit once the settings, by dotted path, are put into the base."""
    for path, value in settings.items():
        base = put(base, tuple(path.split(".")), value)
    try:
        Spec.model_validate(base)
    except ValidationError as error:
        return [fault["ctx"]["conflict"] for fault in error.errors() if "ctx" in fault]
    return []


GRU: dict[str, Any] = {"agent": {"algorithm": {"name": "ppo"}, "net": {"type": "gru"}}}

CASES = [
    (
        {"agent": {"algorithm": {"name": "grpo"}}},
        {"agent.algorithm.kl": "k1", "agent.algorithm.kl_coef": 0.1},
        "agent.algorithm.kl",
        "has no effect: the gradient of k1 in a loss is zero on average, so that it only adds noise",
        "k2, whose gradient is that of KL(policy || first policy); or k3, of KL(first policy || policy)",
        "k2",
    ),
    (
        {"agent": {"algorithm": {"name": "reinforce_pp"}}},
        {"agent.algorithm.zero_variance": "drop"},
        "agent.algorithm.zero_variance",
        "does not fit credit reinforce_pp, whose baseline is the batch's: groups of equal rewards teach too",
        "keep; or agent.algorithm.credit grpo",
        "keep",
    ),
    (
        {"agent": {"algorithm": {"name": "ppo_sil"}, "net": {"type": "gru"}}},
        {},
        "agent.net.type",
        "does not fit ppo_sil, which learns from single steps and not from sequences",
        "mlp; or agent.algorithm.name ppo or a2c",
        "mlp",
    ),
    (
        {"agent": {"algorithm": {"name": "sil"}}},
        {"meta.processes": 2},
        "meta.processes",
        "has no effect: sil learns in one process, only ppo, a2c and language models share",
        "leave it out",
        1,
    ),
    (
        {"agent": {"algorithm": {"name": "sil"}}},
        {"agent.memory": {"name": "prioritised", "max_size": 32}},
        "agent.memory.batch_size",
        "is more than the memory holds: max_size = 32",
        "32 or less; or max_size 64 or more",
        32,
    ),
    (
        {"agent": {"algorithm": {"name": "random"}}},
        {"agent.net": {"hidden": [8]}},
        "agent.net",
        "has no effect: random has no network",
        "leave it out",
        None,
    ),
    (
        CROSSQ,
        {"meta.compile": True},
        "meta.compile",
        "would compile again and again: the limits of crossq's renormalisation move",
        "leave it out",
        False,
    ),
    (
        GRU,
        {"agent.algorithm.minibatch_size": 64},
        "agent.algorithm.minibatch_size",
        "is no equal share of 4 whole sequences of 128 steps (num_envs x time_horizon), as gru needs",
        "nearest valid values: 128; or time_horizon 64",
        128,
    ),
    (
        GRU,
        {"agent.algorithm.minibatch_size": 384},
        "agent.algorithm.minibatch_size",
        "is no equal share of 4 whole sequences of 128 steps (num_envs x time_horizon), as gru needs",
        "nearest valid values: 256 or 512; or time_horizon 96 or 192",
        256,
    ),
    (
        {"agent": {"algorithm": {"name": "dqn"}, "net": {"type": "lstm"}}},
        {},
        "agent.net.type",
        "does not fit dqn, which learns from single steps and not from sequences",
        "mlp; or agent.algorithm.name ppo or a2c",
        "mlp",
    ),
    (
        {"agent": {"algorithm": {"name": "dqn"}, "net": {"type": "nature_cnn"}}},
        {"agent.net.recurrent": 64},
        "agent.net.recurrent",
        "does not fit dqn, which learns from single steps and not from sequences",
        "null; or agent.algorithm.name ppo or a2c",
        None,
    ),
    (
        {"agent": {"net": {"type": "impala"}}},
        {"agent.net.cell": "lstm"},
        "agent.net.cell",
        "has no effect: agent.net.recurrent is null",
        "leave it out",
        None,
    ),
    (
        GRU,
        {"meta.compile": True},
        "meta.compile",
        "would compile again and again: sequences are cut where episodes end",
        "leave it out",
        False,
    ),
    (
        DQN,
        {"agent.algorithm.quantiles": 20},
        "agent.algorithm.quantiles",
        "has no effect: distributional is none",
        "leave it out",
        None,
    ),
    (
        DQN,
        {"agent.algorithm": {"name": "dqn", "distributional": "qr", "loss": "mse"}},
        "agent.algorithm.loss",
        "has no effect: distributional qr has a loss of its own",
        "leave it out",
        None,
    ),
    (
        SAC,
        {"agent.algorithm.temperature_min": 2.0},
        "agent.algorithm.temperature_min",
        "is above the temperature at the start: temperature = 1",
        "1 or less; or temperature 2 or more",
        1.0,
    ),
    (
        CROSSQ,
        {"agent.algorithm.temperature_max": 0.5},
        "agent.algorithm.temperature_max",
        "is below the temperature at the start: temperature = 1",
        "1 or more; or temperature 0.5 or less",
        1.0,
    ),
    (
        CROSSQ,
        {"agent.algorithm": {"name": "crossq", "learn_temperature": False, "discrete_entropy": 0.5}},
        "agent.algorithm.discrete_entropy",
        "has no effect: learn_temperature is false",
        "leave it out",
        None,
    ),
    (
        CROSSQ,
        {"agent.net.shared": True},
        "agent.net.shared",
        "has no effect: crossq's actor and critics are apart",
        "leave it out",
        None,
    ),
    (
        DQN,
        {"agent.algorithm": {"name": "dqn", "exploration": "boltzmann", "epsilon": 0.1}},
        "agent.algorithm.epsilon",
        "has no effect: exploration is boltzmann",
        "leave it out",
        None,
    ),
    (
        SARSA,
        {"agent.algorithm.temperature": 0.1},
        "agent.algorithm.temperature",
        "has no effect: exploration is epsilon_greedy",
        "leave it out",
        None,
    ),
    (
        DQN,
        {"agent.algorithm.n_step": 300},
        "agent.algorithm.n_step",
        "leaves less than one batch of 64 at training_start = 1000",
        "235 or less; or training_start 1260 or more",
        235,
    ),
    (
        PPO,
        {"agent.algorithm.minibatch_size": 100},
        "agent.algorithm.minibatch_size",
        "does not divide num_envs x time_horizon = 4 x 128 = 512",
        "nearest valid values: 64 or 128; or time_horizon 125 or 150",
        128,
    ),
    (
        PPO,
        {"agent.algorithm.minibatch_size": 1000},
        "agent.algorithm.minibatch_size",
        "does not divide num_envs x time_horizon = 4 x 128 = 512",
        "nearest valid values: 512; or time_horizon 250",
        512,
    ),
    (
        PPO,
        {"agent.algorithm.minibatch_size": 1},
        "agent.algorithm.minibatch_size",
        "is too few to standardise advantages over",
        "nearest valid values: 2; or normalize_advantages none",
        2,
    ),
    (
        PPO,
        {"env.max_frame": 100},
        "env.max_frame",
        "ends before the first update of num_envs x time_horizon = 4 x 128 = 512 frames",
        "nearest valid values: 512 or more",
        512,
    ),
    (
        PPO,
        {"env.max_frame": 300},
        "env.max_frame",
        "ends before the first update of num_envs x time_horizon = 4 x 128 = 512 frames",
        "nearest valid values: 512 or more; or time_horizon 64",
        512,
    ),
    (PPO, {"agent.memory": {}}, "agent.memory", "has no effect: ppo learns on-policy", "leave it out", None),
    (
        PPO,
        {"agent.net.duelling": True},
        "agent.net.duelling",
        "has no effect: ppo has no Q-network",
        "leave it out",
        None,
    ),
    (
        PPO,
        {"agent.net.hidden": [], "agent.net.layer_norm": True},
        "agent.net.layer_norm",
        "has no effect: agent.net.hidden is empty",
        "leave it out",
        None,
    ),
    (PPO, {"env.clip_obs": 5}, "env.clip_obs", "has no effect: env.normalize_obs is false", "leave it out", None),
    (
        PPO,
        {"env.reward_scale": 5},
        "env.reward_scale",
        "has no effect: only ppo of the jax engine multiplies rewards by it",
        "leave it out",
        None,
    ),
    (
        A2C,
        {"agent.net.shared": True, "agent.algorithm.critic_hidden": [8]},
        "agent.algorithm.critic_hidden",
        "has no effect: agent.net.shared is true",
        "leave it out",
        None,
    ),
    (
        PPO,
        {"agent.net.optimizer": {"name": "sgd", "eps": 0.1}},
        "agent.net.optimizer.eps",
        "has no effect: sgd takes weight_decay, momentum, dampening, nesterov",
        "leave it out",
        None,
    ),
    (
        PPO,
        {"agent.net.optimizer.momentum": 0.9},
        "agent.net.optimizer.momentum",
        "has no effect: adam takes eps, weight_decay, betas, amsgrad",
        "leave it out",
        None,
    ),
    (
        PPO,
        {"agent.net.optimizer": {"name": "sgd", "nesterov": True}},
        "agent.net.optimizer.nesterov",
        "needs momentum above 0 and dampening 0",
        "false; or momentum 0.9",
        False,
    ),
    (
        PPO,
        {"agent.net.optimizer": {"lr_end_fraction": 0.5, "scheduler": {"T_max": 9}}},
        "agent.net.optimizer.lr_end_fraction",
        "has no effect: the scheduler sets the learning rate",
        "leave it out",
        None,
    ),
    (
        PPO,
        {"agent.net.optimizer": {"lr": 0.1, "scheduler": {"name": "CyclicLR", "base_lr": 0.1, "max_lr": 0.2}}},
        "agent.net.optimizer.lr",
        "has no effect: CyclicLR sets the learning rates itself",
        "leave it out",
        None,
    ),
    (
        PPO,
        {"agent.net.optimizer": {"name": "rprop", "lr_end_fraction": 0.5}},
        "agent.net.optimizer.lr_end_fraction",
        "has no effect: rprop finds its step sizes itself",
        "leave it out",
        None,
    ),
    (
        PPO,
        {"agent.net": {"init": "torch", "actor_gain": 0.1}},
        "agent.net.actor_gain",
        "has no effect: torch weights have no gain",
        "leave it out",
        None,
    ),
    (
        {"agent": {"algorithm": {"name": "reinforce"}}},
        {"meta.compile": True},
        "meta.compile",
        "would compile again and again: the batches of reinforce differ in size",
        "leave it out",
        False,
    ),
    (
        PPO,
        {"agent.net.optimizer": {"clip_grad_norm": None, "clip_each": True}},
        "agent.net.optimizer.clip_each",
        "has no effect: clip_grad_norm is null",
        "leave it out",
        None,
    ),
    (
        PPO,
        {"meta": {"seed": 2**31 - 1, "max_session": 2}},
        "meta.seed",
        "gives the last session the seed 2147483648, above 2147483647",
        "2147483646 or less",
        2147483646,
    ),
    (
        DQN,
        {"agent.algorithm.training_frequency": 3},
        "agent.algorithm.training_frequency",
        "is less than one step of all environments plays: num_envs = 4",
        "4 or more; or env.num_envs 3 or less",
        4,
    ),
    (
        DQN,
        {"agent.memory": {"max_size": 32}},
        "agent.memory.batch_size",
        "is more than the memory holds: max_size = 32",
        "32 or less; or max_size 64 or more",
        32,
    ),
    (
        DQN,
        {"agent.memory": {"batch_size": 2000}},
        "agent.algorithm.training_start",
        "comes before the memory holds one batch: batch_size = 2000",
        "2000 or more; or memory.batch_size 1000 or less",
        2000,
    ),
    (
        DQN,
        {"agent.memory": {"batch_size": 1, "max_size": 2}},
        "agent.memory.max_size",
        "is less than one step adds: num_envs = 4",
        "4 or more; or env.num_envs 2 or less",
        4,
    ),
    (
        DQN,
        {"env.max_frame": 1000},
        "agent.algorithm.training_start",
        "leaves nothing to train on: env.max_frame = 1000",
        "below 1000; or env.max_frame above 1000",
        None,
    ),
    (DQN, {"agent.net.shared": True}, "agent.net.shared", "has no effect: dqn has no critic", "leave it out", None),
    (
        DQN,
        {"agent.algorithm": {"name": "dqn", "polyak": 0.01, "target_update": 100}},
        "agent.algorithm.target_update",
        "has no effect: polyak is below 1",
        "leave it out",
        None,
    ),
    (
        A2C,
        {"env.max_frame": 100},
        "env.max_frame",
        "ends before the first update of num_envs x training_frequency = 4 x 32 = 128 frames",
        "nearest valid values: 128 or more; or training_frequency 25",
        128,
    ),
    (
        A2C,
        {"agent.algorithm": {"name": "a2c", "training_frequency": 1, "normalize_advantages": True}, "env.num_envs": 1},
        "agent.algorithm.training_frequency",
        "is too few to standardise advantages over: num_envs x training_frequency = 1 x 1 = 1",
        "nearest valid values: 2 or more; or normalize_advantages false",
        2,
    ),
    (
        A2C,
        {"agent.algorithm.training_episodes": 6},
        "agent.algorithm.training_episodes",
        "is not a multiple of num_envs = 4",
        "nearest valid values: 4 or 8; or env.num_envs 3 or 6",
        4,
    ),
    (
        SARSA,
        {"agent.algorithm.training_episodes": 4, "agent.algorithm.training_frequency": 16},
        "agent.algorithm.training_frequency",
        "has no effect: training_episodes is set",
        "leave it out",
        None,
    ),
    (
        PPO,
        {"agent.algorithm.training_episodes": 4, "agent.algorithm.time_horizon": 16},
        "agent.algorithm.time_horizon",
        "has no effect: training_episodes is set",
        "leave it out",
        None,
    ),
    (
        PPO,
        {"agent.algorithm.training_episodes": 4, "meta.processes": 2},
        "agent.algorithm.training_episodes",
        "does not fit meta.processes, which share out equal numbers of steps",
        "null; or meta.processes 1",
        None,
    ),
    (
        PPO,
        {"agent.algorithm.training_episodes": 4, "meta.compile": True},
        "meta.compile",
        "would compile again and again: whole episodes differ in length",
        "leave it out",
        False,
    ),
    (
        PPO,
        {"agent.algorithm.clip_vloss": 0.2, "agent.algorithm.val_loss": "huber"},
        "agent.algorithm.val_loss",
        "has no effect: clip_vloss has a squared error",
        "leave it out",
        None,
    ),
    (
        REINFORCE,
        {"agent.algorithm.time_horizon": 16, "agent.algorithm.elite_fraction": 0.5},
        "agent.algorithm.elite_fraction",
        "has no effect: time_horizon is set",
        "leave it out",
        None,
    ),
    (
        REINFORCE,
        {"agent.algorithm.time_horizon": 500, "env.max_frame": 1000},
        "env.max_frame",
        "ends before the first update of num_envs x time_horizon = 4 x 500 = 2000 frames",
        "nearest valid values: 2000 or more; or time_horizon 250",
        2000,
    ),
    (
        {"agent": {"algorithm": {"name": "crossq", "batch_renorm": False}}},
        {"agent.algorithm.renorm_warm_up": 16},
        "agent.algorithm.renorm_warm_up",
        "has no effect: batch_renorm is false",
        "leave it out",
        None,
    ),
    (
        A2C,
        {"agent.algorithm.num_step_returns": 5, "agent.algorithm.lam": 0.9},
        "agent.algorithm.lam",
        "has no effect: num_step_returns is set",
        "leave it out",
        None,
    ),
    (
        SARSA,
        {"env.max_frame": 3, "agent.algorithm.training_frequency": 1},
        "env.max_frame",
        "ends before the first update of num_envs x training_frequency = 4 x 1 = 4 frames",
        "nearest valid values: 4 or more",
        4,
    ),
    (
        SARSA,
        {"agent.net.log_std_init": -1},
        "agent.net.log_std_init",
        "has no effect: sarsa has no continuous actions",
        "leave it out",
        None,
    ),
    (
        REINFORCE,
        {"agent.algorithm.training_frequency": 6},
        "agent.algorithm.training_frequency",
        "is not a multiple of num_envs = 4",
        "nearest valid values: 4 or 8; or env.num_envs 3 or 6",
        4,
    ),
    (
        REINFORCE,
        {"env.normalize_reward": True},
        "env.normalize_reward",
        "has no effect: reinforce scales whole returns: normalize_returns",
        "leave it out",
        None,
    ),
    (
        REINFORCE,
        {"agent.net.shared": True},
        "agent.net.shared",
        "has no effect: reinforce has no critic",
        "leave it out",
        None,
    ),
    (
        DQN,
        {"meta.processes": 2},
        "meta.processes",
        "has no effect: dqn learns in one process, only ppo, a2c and language models share",
        "leave it out",
        1,
    ),
    (
        PPO,
        {"meta.processes": 3, "agent.algorithm.minibatch_size": 96, "agent.algorithm.time_horizon": 96},
        "meta.processes",
        "does not divide num_envs = 4",
        "nearest valid values: 2 or 4; or env.num_envs 3 or 6",
        2,
    ),
    (
        A2C,
        {"meta.processes": 8},
        "meta.processes",
        "does not divide num_envs = 4",
        "nearest valid values: 4; or env.num_envs 8",
        4,
    ),
    (
        {"agent": {"algorithm": {"name": "grpo"}}},
        {"meta.processes": 2, "agent.model.lora": {}},
        "meta.processes",
        "does not fit agent.model.lora: adapters are small enough to be trained in one process",
        "1; or leave out agent.model.lora",
        1,
    ),
    (
        {"agent": {"algorithm": {"name": "grpo"}}},
        {"agent.algorithm.teacher_coef": 0.5},
        "agent.algorithm.teacher_coef",
        "has no effect: there is no teacher",
        "leave it out",
        None,
    ),
    (
        {"agent": {"algorithm": {"name": "grpo"}}},
        {"env.text.dialogue.history": 2},
        "env.text.dialogue.history",
        "does not fit strategy interleaved: one sample holds all turns of a rollout",
        "env.text.dialogue.strategy: branching; or leave it out",
        None,
    ),
]


@pytest.mark.parametrize(("base", "settings", "path", "reason", "valid", "fix"), CASES)
def test_conflict(base: dict[str, Any], settings: dict[str, Any], path: str, reason: str, valid: str, fix: Any) -> None:
    assert [(each.path, each.reason, each.valid, each.fix) for each in conflicts(base, settings)] == [
        (path, reason, valid, fix)
    ]


@pytest.mark.parametrize("case", CASES)
def test_the_fix_is_valid(case: tuple[Any, ...]) -> None:
    base, settings, path, _, _, fix = case
    if fix is not None:
        assert conflicts(base, {**settings, path: fix}) == []


def test_a_server_needs_an_address_and_an_address_a_server() -> None:
    def told(**model: str) -> list[tuple[str, str]]:
        base = {"env": {"name": "copy"}, "agent": {"algorithm": {"name": "grpo"}, "model": model}}
        return [(each.path, each.reason) for each in conflicts(base, {})]

    assert told(generator="openai") == [("agent.model.generator", "needs the address of the server")]
    assert told(url="http://x") == [("agent.model.url", "has no effect: agent.model.generator is not openai")]
    assert told(generator="openai", url="http://x") == []


def test_settings_of_vllm_fit_only_vllm_in_one_process() -> None:
    grpo = {"env": {"name": "copy"}, "agent": {"algorithm": {"name": "grpo"}, "model": {"generator": "vllm"}}}
    settings = {"agent.model.vllm.memory": 0.5, "agent.model.vllm.tensor_parallel": 2}
    assert conflicts(grpo, settings) == []
    unused = conflicts(grpo, {**settings, "agent.model.generator": "torch"})
    assert [(each.path, each.reason) for each in unused] == [
        (path, "has no effect: agent.model.generator is not vllm") for path in settings
    ]
    crowd = conflicts(grpo, {"meta.processes": 2})
    assert [(each.path, each.fix) for each in crowd] == [("meta.processes", 1)]


def test_several_conflicts_are_told_at_once() -> None:
    found = conflicts(DQN, {"env.max_frame": 500, "agent.net.shared": True, "agent.algorithm.training_frequency": 3})
    assert [each.path for each in found] == [
        "agent.net.shared",
        "agent.algorithm.training_frequency",
        "agent.algorithm.training_start",
    ]


@pytest.mark.parametrize("base", [PPO, DQN])
def test_defaults_fit(base: dict[str, Any]) -> None:
    assert conflicts(base, {}) == []


def test_one_environment_and_one_step_cannot_be_standardised() -> None:
    found = conflicts(PPO, {"env.num_envs": 1, "agent.algorithm": {"time_horizon": 1, "minibatch_size": 1}})
    assert [each.valid for each in found] == ["nearest valid values: normalize_advantages none"]


@given(st.integers(1, 5000), st.integers(1, 6000))
def test_near_divisors_are_the_nearest(total: int, wanted: int) -> None:
    divisors = [n for n in range(1, total + 1) if total % n == 0 and n != wanted]
    below, above = [n for n in divisors if n < wanted], [n for n in divisors if n > wanted]
    assert near_divisors(total, wanted) == below[-1:] + above[:1]


@given(st.integers(1, 50), st.integers(1, 500))
def test_near_multiples_are_the_nearest(step: int, wanted: int) -> None:
    multiples = [n for n in range(step, 600, step) if n != wanted]
    below, above = [n for n in multiples if n < wanted], [n for n in multiples if n > wanted]
    expected = below[-1:] + above[:1] if wanted % step else above[:1]
    assert near_multiples(step, wanted, most=600) == expected


def test_the_smaller_of_two_equally_near_values_is_closest() -> None:
    assert closest([4, 8], 6) == 4
    assert closest([], 6) is None


def test_pixels_are_not_scaled_twice() -> None:
    found = conflicts(PPO, {"env.normalize_obs": True, "agent.net": {"type": "nature_cnn"}})
    assert [(each.path, each.reason) for each in found] == [
        ("env.normalize_obs", "does not fit: nature_cnn scales pixels itself")
    ]
