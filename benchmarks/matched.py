"""The cells of the peer comparison, and the settings that each library is given, in its own words.

They are CleanRL's, the common ground of published comparisons, but for value clipping: SB3 and
CleanRL mean different losses by it, so no library clips here. All use Huber's loss for DQN, the only
one that SB3 has; it learns little with these settings in either library, so those that SB3's own zoo
of tuned agents publishes are a cell of their own. Tianshou cannot be matched in all: its learning
rate stays constant and its DQN explores at a fixed rate. CleanRL's DQN has the squared loss only; PureJaxRL
and rejax clip the value's loss.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cell:
    """One algorithm on one problem; `bar` is the ratio to the fastest peer that is aimed at, if any is.

    A rate is steady after `steps` already; returns are told apart after `learning_steps`. After `warm` steps
    everything has been compiled and has learned for a while: the steady rate is that of the steps beyond them.
    """

    algorithm: str
    env: str
    envs: int
    steps: int
    learning_steps: int
    episodes: int
    bar: float | None
    peers: tuple[str, ...]
    warm: int
    engines: tuple[str, ...] = ("operant", "operant-jax")


EVERY_ENGINE = ("operant", "operant-jax", "operant-fused")
CARTPOLE_PPO_PEERS = ("sb3", "sbx", "cleanrl", "tianshou", "rlox")
CARTPOLE_DQN_PEERS = ("sb3", "sbx", "cleanrl", "cleanrl-jax", "tianshou")
TD3_PEERS = ("sb3", "sbx", "cleanrl", "cleanrl-jax")

CELLS = {
    "ppo-cartpole": Cell("ppo", "CartPole-v1", 4, 100_352, 100_352, 50, 2.0, CARTPOLE_PPO_PEERS, 5120),
    # Learner and environment in one program: so fast that a run must be long to be timed.
    "ppo-cartpole-compiled": Cell(
        "ppo", "CartPole-v1", 4, 2_048_000, 100_352, 50, None, ("rejax", "purejaxrl"), 102_400, ("operant-fused",)
    ),
    "dqn-cartpole": Cell("dqn", "CartPole-v1", 1, 50_000, 50_000, 50, 1.5, CARTPOLE_DQN_PEERS, 11_000),
    "dqn-cartpole-tuned": Cell("dqn", "CartPole-v1", 1, 50_000, 50_000, 50, None, ("sb3",), 2048),
    "sac-pendulum": Cell(
        "sac", "Pendulum-v1", 1, 4000, 8000, 50, 1.3, ("sb3", "sbx", "cleanrl", "tianshou"), 1200, EVERY_ENGINE
    ),
    "td3-pendulum": Cell("td3", "Pendulum-v1", 1, 4000, 8000, 50, None, TD3_PEERS, 1200),
    "crossq-pendulum": Cell("crossq", "Pendulum-v1", 1, 4000, 8000, 50, None, ("sbx",), 1200),
    "ppo-halfcheetah": Cell("ppo", "HalfCheetah-v5", 1, 20_480, 102_400, 10, 2.0, ("sb3",), 4096),
    "ppo-pong": Cell("ppo", "ALE/Pong-v5", 8, 8_192, 8_192, 1, 1.5, ("sb3",), 2048),
}
EXPLORATION_NOISE = 0.1  # of TD3

# The share of a run over which DQN explores less and less.
EXPLORATION = {"dqn-cartpole": 0.5, "dqn-cartpole-tuned": 0.16}

EVERY_STEP = {"training_start": 1000, "training_frequency": 1, "training_iter": 1}
ADAM: dict[str, Any] = {"lr": 1e-3, "eps": 1e-8, "clip_grad_norm": None}
OFF_POLICY_256: dict[str, Any] = {
    "memory": {"name": "replay", "batch_size": 256, "max_size": 1_000_000},
    "net": {
        "hidden": [256, 256],
        "activation": "relu",
        "init": "torch",
        "optimizer": ADAM,
    },
}

OPERANT: dict[str, dict[str, Any]] = {
    "ppo-cartpole": {
        "agent": {
            "algorithm": {
                "name": "ppo",
                "time_horizon": 128,
                "minibatch_size": 128,
                "training_epoch": 4,
                "clip_eps": 0.2,
                "entropy_coef": 0.01,
                "val_loss_coef": 0.5,
            },
            "net": {"hidden": [64, 64], "activation": "tanh", "optimizer": {"lr": 2.5e-4, "lr_end_fraction": 0.0}},
        },
    },
    "dqn-cartpole": {
        "agent": {
            "algorithm": {
                "name": "dqn",
                "double": False,
                "training_start": 10_000,
                "training_frequency": 10,
                "target_update": 500,
                "epsilon": {"start": 1.0, "end": 0.05},
                "loss": "huber",
            },
            "memory": {"name": "replay", "batch_size": 128, "max_size": 10_000},
            "net": {
                "hidden": [120, 84],
                "activation": "relu",
                "init": "torch",
                "optimizer": {"lr": 2.5e-4, "eps": 1e-8, "clip_grad_norm": 10.0},
            },
        },
    },
    "dqn-cartpole-tuned": {
        "agent": {
            "algorithm": {
                "name": "dqn",
                "double": False,
                "training_start": 1024,
                "training_frequency": 256,
                "training_iter": 128,
                "target_update": 256,
                "epsilon": {"start": 1.0, "end": 0.04},
                "loss": "huber",
            },
            "memory": {"name": "replay", "batch_size": 64, "max_size": 100_000},
            "net": {
                "hidden": [256, 256],
                "activation": "relu",
                "init": "torch",
                "optimizer": {"lr": 2.3e-3, "eps": 1e-8, "clip_grad_norm": 10.0},
            },
        },
    },
    "sac-pendulum": {
        "agent": {
            "algorithm": {"name": "sac", **EVERY_STEP},
            **OFF_POLICY_256,
        },
    },
    "td3-pendulum": {
        "agent": {
            "algorithm": {"name": "td3", "exploration_noise": EXPLORATION_NOISE, **EVERY_STEP},
            **OFF_POLICY_256,
        },
    },
    "crossq-pendulum": {
        "agent": {
            "algorithm": {"name": "crossq", "policy_delay": 3, "renorm_warm_up": 100_000, **EVERY_STEP},
            # SBX's CrossQ has these momenta unless told otherwise; with Adam's own it learns far more slowly.
            **OFF_POLICY_256,
            "net": {**OFF_POLICY_256["net"], "optimizer": {**ADAM, "betas": [0.5, 0.999]}},
        },
    },
    "ppo-halfcheetah": {
        "env": {"normalize_obs": True, "normalize_reward": True, "clip_reward": 10.0},
        "agent": {
            "algorithm": {
                "name": "ppo",
                "time_horizon": 2048,
                "minibatch_size": 64,
                "training_epoch": 10,
                "clip_eps": 0.2,
                "entropy_coef": 0.0,
                "val_loss_coef": 0.5,
            },
            "net": {"hidden": [64, 64], "activation": "tanh", "optimizer": {"lr": 3e-4, "lr_end_fraction": 0.0}},
        },
    },
    "ppo-pong": {
        "env": {"kwargs": {"use_fire_reset": False}},
        "agent": {
            "algorithm": {
                "name": "ppo",
                "time_horizon": 128,
                "minibatch_size": 256,
                "training_epoch": 4,
                "clip_eps": 0.1,
                "entropy_coef": 0.01,
                "val_loss_coef": 0.5,
            },
            "net": {"type": "nature_cnn", "optimizer": {"lr": 2.5e-4, "lr_end_fraction": 0.0}},
        },
    },
}


# Two million frames take seconds: rows and checkpoints come as seldom as in the specs that ship for compiled programs.
OPERANT["ppo-cartpole-compiled"] = {
    **OPERANT["ppo-cartpole"],
    "meta": {"log_frequency": 5_120, "save_frequency": 102_400},
}


def operant_settings(name: str, steps: int) -> dict[str, Any]:
    """A cell's settings for a run of this length."""
    settings = copy.deepcopy(OPERANT[name])
    if name in EXPLORATION:
        settings["agent"]["algorithm"]["epsilon"]["frames"] = int(EXPLORATION[name] * steps)
    return settings


def operant_spec(name: str, steps: int) -> dict[str, Any]:
    """The same as a whole spec."""
    cell, settings = CELLS[name], operant_settings(name, steps)
    env = {"name": cell.env, "num_envs": cell.envs, "max_frame": steps, **settings.get("env", {})}
    meta = {"eval_frequency": 10**9, "eval_episodes": 1, "final_episodes": 1, **settings.get("meta", {})}
    return {"name": name, "meta": meta, "env": env, "agent": settings["agent"]}


def linear_to_zero(start: float) -> Any:
    """SB3's form of a learning rate that falls to zero over the run."""
    return lambda left: left * start


SB3_OFF_POLICY_256: dict[str, Any] = {
    "learning_starts": 1000,
    "learning_rate": 1e-3,
    "batch_size": 256,
    "train_freq": 1,
    "gradient_steps": 1,
    "policy_kwargs": {"net_arch": [256, 256]},
}

# SBX, which is SB3 in JAX, is given the same.
SB3: dict[str, dict[str, Any]] = {
    "ppo-cartpole": {
        "n_steps": 128,
        "batch_size": 128,
        "n_epochs": 4,
        "learning_rate": linear_to_zero(2.5e-4),
        "ent_coef": 0.01,
        "vf_coef": 0.5,
    },
    "dqn-cartpole": {
        "learning_rate": 2.5e-4,
        "buffer_size": 10_000,
        "learning_starts": 10_000,
        "batch_size": 128,
        "train_freq": 10,
        "gradient_steps": 1,
        "target_update_interval": 500,
        "exploration_fraction": EXPLORATION["dqn-cartpole"],
        "exploration_final_eps": 0.05,
        "policy_kwargs": {"net_arch": [120, 84]},
    },
    "dqn-cartpole-tuned": {
        "learning_rate": 2.3e-3,
        "buffer_size": 100_000,
        "learning_starts": 1000,
        "batch_size": 64,
        "train_freq": 256,
        "gradient_steps": 128,
        "target_update_interval": 10,
        "exploration_fraction": EXPLORATION["dqn-cartpole-tuned"],
        "exploration_final_eps": 0.04,
        "policy_kwargs": {"net_arch": [256, 256]},
    },
    "sac-pendulum": SB3_OFF_POLICY_256,
    "td3-pendulum": SB3_OFF_POLICY_256,
    "crossq-pendulum": {**SB3_OFF_POLICY_256, "policy_delay": 3},
    "ppo-halfcheetah": {
        "n_steps": 2048,
        "batch_size": 64,
        "n_epochs": 10,
        "learning_rate": linear_to_zero(3e-4),
        "ent_coef": 0.0,
        "vf_coef": 0.5,
    },
    "ppo-pong": {
        "n_steps": 128,
        "batch_size": 256,
        "n_epochs": 4,
        "learning_rate": linear_to_zero(2.5e-4),
        "clip_range": 0.1,
        "ent_coef": 0.01,
        "vf_coef": 0.5,
    },
}

# Flags of CleanRL's files; the widths of its nets are those of the cells.
CLEANRL: dict[str, dict[str, Any]] = {
    "ppo-cartpole": {
        "num-envs": 4,
        "num-steps": 128,
        "num-minibatches": 4,
        "update-epochs": 4,
        "learning-rate": 2.5e-4,
        "clip-vloss": False,
        "ent-coef": 0.01,
        "vf-coef": 0.5,
    },
    "dqn-cartpole": {
        "learning-rate": 2.5e-4,
        "buffer-size": 10_000,
        "learning-starts": 10_000,
        "batch-size": 128,
        "train-frequency": 10,
        "target-network-frequency": 500,
        "exploration-fraction": EXPLORATION["dqn-cartpole"],
        "end-e": 0.05,
    },
    "sac-pendulum": {
        "learning-starts": 1000,
        "batch-size": 256,
        "policy-lr": 1e-3,
        "q-lr": 1e-3,
        "policy-frequency": 1,
    },
    "td3-pendulum": {
        "learning-starts": 1000,
        "batch-size": 256,
        "learning-rate": 1e-3,
        "exploration-noise": EXPLORATION_NOISE,
    },
}

# Arguments of Tianshou's training configuration and of the algorithm's parameters, and the widths of its nets.
TIANSHOU: dict[str, dict[str, Any]] = {
    "ppo-cartpole": {
        "training": {
            "buffer_size": 4096,
            "collection_step_num_env_steps": 512,
            "batch_size": 128,
            "update_step_num_repetitions": 4,
        },
        "params": {"lr": 2.5e-4, "ent_coef": 0.01, "max_grad_norm": 0.5},
        "hidden": (64, 64),
    },
    "dqn-cartpole": {
        "training": {
            "buffer_size": 10_000,
            "collection_step_num_env_steps": 10,
            "batch_size": 128,
            "update_step_num_gradient_steps_per_sample": 0.1,
            "start_timesteps": 10_000,
            "start_timesteps_random": True,
        },
        "params": {
            "lr": 2.5e-4,
            "is_double": False,
            "target_update_freq": 50,
            "eps_training": 0.1,
            "eps_inference": 0.0,
        },
        "hidden": (120, 84),
    },
    "sac-pendulum": {
        "training": {
            "buffer_size": 1_000_000,
            "collection_step_num_env_steps": 1,
            "batch_size": 256,
            "update_step_num_gradient_steps_per_sample": 1.0,
            "start_timesteps": 1000,
            "start_timesteps_random": True,
        },
        "params": {"actor_lr": 1e-3, "critic1_lr": 1e-3, "critic2_lr": 1e-3},
        "hidden": (256, 256),
    },
}
