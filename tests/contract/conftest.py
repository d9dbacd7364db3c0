"""The cases that every algorithm of every engine must satisfy, and how to run one as a real process."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from operant.run.records import Records, difference
from operant.run.run import Run
from operant.spec.schema import Spec
from tests.warm import WarmProcess

META = {"log_frequency": 500, "eval_frequency": 4000, "save_frequency": 1500, "eval_episodes": 3, "final_episodes": 5}
SMALL_NET = {"hidden": [32, 32]}
DQN = {"training_start": 500, "training_frequency": 8}
TWIN = {"training_start": 300, "training_frequency": 8, "training_iter": 1}
# Their updates are dear, so these cases play few frames.
TWIN_FRAMES = 4800
TWIN_META = {
    "log_frequency": 300,
    "eval_frequency": 2400,
    "save_frequency": 900,
    "eval_episodes": 2,
    "final_episodes": 3,
}
SMALL_CNN = {"type": "nature_cnn", "conv": [[8, 8, 4], [8, 3, 2]], "hidden": [32]}
ATARI = {
    "name": "ALE/Breakout-v5",
    "clip_reward": 1.0,
    "max_t": 200,
    "kwargs": {"life_loss_info": True, "img_height": 42, "img_width": 42, "noop_max": 3},
}
# A game's start costs as much as hundreds of its steps, so these cases play few of them.
FEW_GAMES = {
    "log_frequency": 200,
    "eval_frequency": 4000,
    "save_frequency": 700,
    "eval_episodes": 1,
    "final_episodes": 2,
}

TINY_MODEL = {
    "source": "tiny",
    "tiny": {"layers": 1, "width": 32, "heads": 2, "context": 32},
    "optimizer": {"lr": 1e-3},
}
GUESS_AND_COPY = [
    {"name": "guess", "arguments": {"style": "bare", "numbers": 8, "turns": 3}},
    {"name": "copy", "arguments": {"style": "bare", "letters": 2}},
]
COPY_AND_SORT = [
    {"name": "copy", "arguments": {"style": "bare", "letters": 2}, "weight": 2.0},
    {"name": "sort", "arguments": {"style": "bare", "count": 2}},
]

CASES: dict[str, dict[str, Any]] = {
    "ppo": {
        "env": {"name": "CartPole-v1", "num_envs": 4, "max_frame": 8000},
        "agent": {"algorithm": {"name": "ppo", "time_horizon": 64, "minibatch_size": 64}, "net": SMALL_NET},
    },
    "ppo-continuous-normalised": {
        "env": {
            "name": "Pendulum-v1",
            "num_envs": 2,
            "max_frame": 8000,
            "normalize_obs": True,
            "normalize_reward": True,
            "clip_reward": 5.0,
        },
        "agent": {
            "algorithm": {
                "name": "ppo",
                "time_horizon": 64,
                "minibatch_size": 32,
                "clip_eps": {"start": 0.3, "end": 0.1, "frames": 10_000},
                "target_kl": 0.05,
            },
            "net": {**SMALL_NET, "shared": True, "optimizer": {"name": "rmsprop", "lr_end_fraction": 0.1}},
        },
    },
    "dqn": {
        "env": {"name": "CartPole-v1", "num_envs": 2, "max_frame": 8000},
        "agent": {
            "algorithm": {"name": "dqn", **DQN, "target_update": 200},
            "memory": {"name": "replay", "max_size": 3000},
            "net": {**SMALL_NET, "layer_norm": True},
        },
    },
    "dqn-duelling-prioritised": {
        "env": {"name": "Acrobot-v1", "num_envs": 1, "max_frame": 8000, "normalize_obs": True},
        "agent": {
            "algorithm": {"name": "dqn", **DQN, "polyak": 0.05},
            "memory": {"name": "prioritised", "max_size": 3000, "beta": {"start": 0.4, "end": 1.0, "frames": 8000}},
            "net": {**SMALL_NET, "duelling": True, "optimizer": {"name": "adamw", "weight_decay": 0.01}},
        },
    },
    "a2c": {
        "env": {"name": "CartPole-v1", "num_envs": 2, "max_frame": 8000},
        "agent": {
            "algorithm": {"name": "a2c", "training_frequency": 8, "normalize_advantages": True},
            "net": {**SMALL_NET, "optimizer": {"name": "rmsprop", "lr": 7e-4, "lr_end_fraction": 0.0}},
        },
    },
    "a2c-continuous-normalised": {
        "env": {
            "name": "Pendulum-v1",
            "num_envs": 2,
            "max_frame": 8000,
            "normalize_obs": True,
            "normalize_reward": True,
        },
        "agent": {
            "algorithm": {
                "name": "a2c",
                "training_frequency": 8,
                "num_step_returns": 5,
                "normalize_v_targets": True,
                "entropy_coef": {"start": 0.01, "end": 0.0, "frames": 10_000},
            },
            "net": {**SMALL_NET, "shared": True},
        },
    },
    "reinforce": {
        "env": {"name": "CartPole-v1", "num_envs": 2, "max_frame": 8000, "max_t": 100},
        "agent": {"algorithm": {"name": "reinforce", "training_frequency": 2}, "net": SMALL_NET},
    },
    "reinforce-continuous-normalised": {
        "env": {"name": "Pendulum-v1", "num_envs": 2, "max_frame": 8000, "max_t": 50, "normalize_obs": True},
        "agent": {
            "algorithm": {"name": "reinforce", "training_frequency": 4, "normalize_returns": "centre"},
            "net": {**SMALL_NET, "optimizer": {"name": "rmsprop"}},
        },
    },
    "ppo-box2d": {
        "env": {"name": "LunarLander-v3", "num_envs": 4, "max_frame": 8000},
        "agent": {"algorithm": {"name": "ppo", "time_horizon": 64, "minibatch_size": 64}, "net": SMALL_NET},
    },
    "ppo-box2d-continuous": {
        "env": {"name": "BipedalWalker-v3", "num_envs": 2, "max_frame": 8000, "max_t": 400, "normalize_obs": True},
        "agent": {"algorithm": {"name": "ppo", "time_horizon": 64, "minibatch_size": 32}, "net": SMALL_NET},
    },
    "dqn-box2d": {
        "env": {"name": "LunarLander-v3", "num_envs": 2, "max_frame": 8000},
        "agent": {
            "algorithm": {"name": "dqn", **DQN},
            "memory": {"name": "replay", "max_size": 3000},
            "net": SMALL_NET,
        },
    },
    "ppo-mujoco": {
        "env": {
            "name": "HalfCheetah-v5",
            "num_envs": 4,
            "max_frame": 8000,
            "max_t": 300,
            "normalize_obs": True,
            "normalize_reward": True,
        },
        "agent": {"algorithm": {"name": "ppo", "time_horizon": 64, "minibatch_size": 64}, "net": SMALL_NET},
    },
    "sac-mujoco": {
        "env": {"name": "HalfCheetah-v5", "num_envs": 2, "max_frame": TWIN_FRAMES, "max_t": 300, "normalize_obs": True},
        "agent": {
            "algorithm": {"name": "sac", **TWIN},
            "memory": {"name": "replay", "max_size": 2000},
            "net": SMALL_NET,
        },
        "meta": TWIN_META,
    },
    "dqn-n-step-combined": {
        "env": {"name": "CartPole-v1", "num_envs": 2, "max_frame": 8000},
        "agent": {
            "algorithm": {"name": "dqn", **DQN, "n_step": 3, "target_update": 200},
            "memory": {"name": "replay", "max_size": 3000, "combined": True},
            "net": SMALL_NET,
        },
    },
    "sac": {
        "env": {"name": "CartPole-v1", "num_envs": 2, "max_frame": TWIN_FRAMES},
        "agent": {
            "algorithm": {"name": "sac", **TWIN, "entropy_scale": 0.5},
            "memory": {"name": "prioritised", "max_size": 2000},
            "net": SMALL_NET,
        },
        "meta": TWIN_META,
    },
    "sac-continuous": {
        "env": {"name": "Pendulum-v1", "num_envs": 1, "max_frame": TWIN_FRAMES, "normalize_obs": True},
        "agent": {
            "algorithm": {"name": "sac", **TWIN},
            "memory": {"name": "replay", "max_size": 2000},
            "net": {**SMALL_NET, "optimizer": {"critic_lr": 1e-3, "lr_end_fraction": 0.1}},
        },
        "meta": TWIN_META,
    },
    "sarsa": {
        "env": {"name": "CartPole-v1", "num_envs": 2, "max_frame": 8000},
        "agent": {
            "algorithm": {"name": "sarsa", "training_frequency": 8},
            "net": {**SMALL_NET, "duelling": True, "optimizer": {"name": "rmsprop"}},
        },
    },
    "sarsa-normalised": {
        "env": {
            "name": "Acrobot-v1",
            "num_envs": 2,
            "max_frame": 8000,
            "max_t": 60,
            "normalize_obs": True,
            "normalize_reward": True,
        },
        "agent": {
            "algorithm": {"name": "sarsa", "training_frequency": 8, "loss": "mse", "exploration": "boltzmann"},
            "net": SMALL_NET,
        },
    },
    "td3": {
        "env": {"name": "Pendulum-v1", "num_envs": 2, "max_frame": TWIN_FRAMES},
        "agent": {
            "algorithm": {
                "name": "td3",
                **TWIN,
                "policy_delay": 3,
                "exploration_noise": {"start": 0.5, "end": 0.1, "frames": 5000},
            },
            "memory": {"name": "replay", "max_size": 2000},
            "net": {**SMALL_NET, "layer_norm": True},
        },
        "meta": TWIN_META,
    },
    "ppo-two-ranks": {
        "env": {
            "name": "Pendulum-v1",
            "num_envs": 8,
            "max_frame": 8000,
            "normalize_obs": True,
            "normalize_reward": True,
        },
        "agent": {"algorithm": {"name": "ppo", "time_horizon": 64, "minibatch_size": 64}, "net": SMALL_NET},
        "meta": {**META, "processes": 2},
    },
    "a2c-episodes": {
        "env": {
            "name": "CartPole-v1",
            "num_envs": 2,
            "max_frame": 8000,
            "normalize_obs": True,
            "normalize_reward": True,
        },
        "agent": {
            "algorithm": {"name": "a2c", "training_episodes": 2, "num_step_returns": 50, "val_loss": "huber"},
            "net": {"type": "gru", "hidden": [16], "recurrent": 16, "activation": "sigmoid"},
        },
    },
    "ppo-episodes": {
        "env": {"name": "operant/Masked-v0", "num_envs": 2, "max_frame": 8000},
        "agent": {"algorithm": {"name": "ppo", "training_episodes": 4, "minibatch_size": 64}, "net": SMALL_NET},
    },
    "sarsa-episodes": {
        "env": {"name": "operant/Masked-v0", "num_envs": 2, "max_frame": 8000},
        "agent": {"algorithm": {"name": "sarsa", "training_episodes": 2}, "net": SMALL_NET},
    },
    "sil-episodes": {
        "env": {"name": "CartPole-v1", "num_envs": 2, "max_frame": 8000},
        "agent": {
            "algorithm": {"name": "sil", "training_episodes": 2, "sil_iter": 1},
            "memory": {"name": "prioritised", "max_size": 2000},
            "net": SMALL_NET,
        },
    },
    "reinforce-elite": {
        "env": {"name": "CartPole-v1", "num_envs": 2, "max_frame": 8000},
        "agent": {
            "algorithm": {"name": "reinforce", "training_frequency": 4, "elite_fraction": 0.5},
            "net": SMALL_NET,
        },
    },
    "reinforce-steps": {
        "env": {"name": "CartPole-v1", "num_envs": 2, "max_frame": 8000},
        "agent": {"algorithm": {"name": "reinforce", "time_horizon": 30}, "net": SMALL_NET},
    },
    "sac-uneven-rounds": {
        "env": {"name": "CartPole-v1", "num_envs": 2, "max_frame": TWIN_FRAMES},
        "agent": {
            "algorithm": {"name": "sac", **TWIN, "training_frequency": 7, "critic_reduction": "mean", "loss": "huber"},
            "memory": {"name": "prioritised", "max_size": 2000},
            "net": {**SMALL_NET, "activation": "leaky_relu"},
        },
        "meta": TWIN_META,
    },
    "crossq-plain": {
        "env": {"name": "CartPole-v1", "num_envs": 2, "max_frame": TWIN_FRAMES},
        "agent": {
            "algorithm": {"name": "crossq", **TWIN, "batch_renorm": False, "critic_reduction": "mean"},
            "memory": {"name": "replay", "max_size": 2000},
            "net": {**SMALL_NET, "layer_norm": True},
        },
        "meta": TWIN_META,
    },
    "dqn-boltzmann": {
        "env": {"name": "CartPole-v1", "num_envs": 2, "max_frame": 8000},
        "agent": {
            "algorithm": {
                "name": "dqn",
                **DQN,
                "exploration": "boltzmann",
                "temperature": {"start": 1.0, "end": 0.08, "frames": 10_000},
                "target_update": 200,
            },
            "memory": {"name": "replay", "max_size": 3000},
            "net": SMALL_NET,
        },
    },
    "crossq": {
        "env": {"name": "Pendulum-v1", "num_envs": 1, "max_frame": TWIN_FRAMES},
        "agent": {
            "algorithm": {"name": "crossq", **TWIN, "critic_hidden": [48, 48], "renorm_warm_up": 300},
            "memory": {"name": "replay", "max_size": 2000},
            "net": SMALL_NET,
        },
        "meta": TWIN_META,
    },
    "crossq-discrete": {
        "env": {"name": "CartPole-v1", "num_envs": 2, "max_frame": TWIN_FRAMES, "normalize_obs": True},
        "agent": {
            "algorithm": {
                "name": "crossq",
                **TWIN,
                "temperature_max": 2.0,
                "discrete_entropy": 0.6,
                "renorm_warm_up": 200,
            },
            "memory": {"name": "prioritised", "max_size": 2000},
            "net": SMALL_NET,
        },
        "meta": TWIN_META,
    },
    "dqn-quantiles": {
        "env": {"name": "CartPole-v1", "num_envs": 2, "max_frame": 8000},
        "agent": {
            "algorithm": {
                "name": "dqn",
                **DQN,
                "distributional": "qr",
                "quantiles": 11,
                "n_step": 3,
                "target_update": 200,
            },
            "memory": {"name": "prioritised", "max_size": 3000, "combined": True},
            "net": {**SMALL_NET, "duelling": True},
        },
    },
    "ppo-atari": {
        "env": {**ATARI, "num_envs": 2, "max_frame": 4096},
        "meta": FEW_GAMES,
        "agent": {"algorithm": {"name": "ppo", "time_horizon": 64, "minibatch_size": 64}, "net": SMALL_CNN},
    },
    "dqn-atari": {
        "env": {**ATARI, "num_envs": 2, "max_frame": 4000},
        "meta": FEW_GAMES,
        "agent": {
            "algorithm": {"name": "dqn", "training_start": 300, "training_frequency": 4, "n_step": 3},
            "memory": {"name": "prioritised", "batch_size": 16, "max_size": 1000},
            "net": {**SMALL_CNN, "duelling": True},
        },
    },
    "ppo-processes": {
        "env": {"name": "CartPole-v1", "num_envs": 4, "max_frame": 8000, "vectorization": "processes"},
        "agent": {"algorithm": {"name": "ppo", "time_horizon": 64, "minibatch_size": 64}, "net": SMALL_NET},
    },
    "ppo-return-scale": {
        "env": {"name": "Pendulum-v1", "num_envs": 4, "max_frame": 8000},
        "agent": {
            "algorithm": {
                "name": "ppo",
                "time_horizon": 64,
                "minibatch_size": 64,
                "normalize_advantages": "percentile",
                "symlog": True,
                "normalize_v_targets": True,
            },
            "net": SMALL_NET,
        },
    },
    "ppo-masked": {
        "env": {"name": "operant/Masked-v0", "num_envs": 4, "max_frame": 8000},
        "agent": {"algorithm": {"name": "ppo", "time_horizon": 64, "minibatch_size": 64}, "net": SMALL_NET},
    },
    "dqn-masked": {
        "env": {"name": "operant/Masked-v0", "num_envs": 2, "max_frame": 8000},
        "agent": {
            "algorithm": {"name": "dqn", **DQN, "n_step": 2},
            "memory": {"name": "replay", "max_size": 3000},
            "net": SMALL_NET,
        },
    },
    "ppo-gru": {
        "env": {"name": "operant/CartPoleNoVelocity-v1", "num_envs": 4, "max_frame": 8000, "normalize_obs": True},
        "agent": {
            "algorithm": {"name": "ppo", "time_horizon": 64, "minibatch_size": 128},
            "net": {"type": "gru", "hidden": [32], "recurrent": 16},
        },
    },
    "a2c-lstm": {
        "env": {"name": "operant/Recall-v0", "num_envs": 2, "max_frame": 8000},
        "agent": {
            "algorithm": {"name": "a2c", "training_frequency": 16},
            "net": {"type": "lstm", "hidden": [], "recurrent": 16, "layers": 2, "shared": True},
        },
    },
    "ppo-scheduled-bfloat16": {
        "env": {"name": "CartPole-v1", "num_envs": 4, "max_frame": 8000},
        "agent": {
            "algorithm": {"name": "ppo", "time_horizon": 64, "minibatch_size": 64},
            "net": {
                **SMALL_NET,
                "init": "xavier_normal",
                "optimizer": {
                    "name": "nadam",
                    "critic_lr": 1e-3,
                    "scheduler": {"name": "CosineAnnealingWarmRestarts", "T_0": 50, "T_mult": 2},
                },
            },
        },
        "meta": {**META, "precision": "bfloat16"},
    },
    "dqn-compiled": {
        "env": {"name": "CartPole-v1", "num_envs": 2, "max_frame": 8000},
        "agent": {
            "algorithm": {"name": "dqn", **DQN, "target_update": 200},
            "memory": {"name": "replay", "max_size": 3000},
            "net": {**SMALL_NET, "optimizer": {"name": "sgd", "momentum": 0.9, "nesterov": True}},
        },
        "meta": {**META, "compile": True},
    },
    "random": {
        "env": {"name": "operant/Masked-v0", "num_envs": 1, "max_frame": 16_000},
        "agent": {"algorithm": {"name": "random"}},
    },
    "sil": {
        "env": {"name": "operant/Masked-v0", "num_envs": 2, "max_frame": 8000},
        "agent": {
            "algorithm": {"name": "sil", "training_frequency": 8, "sil_iter": 1},
            "memory": {"name": "prioritised", "max_size": 2000},
            "net": SMALL_NET,
        },
    },
    "ppo-sil-continuous": {
        "env": {
            "name": "Pendulum-v1",
            "num_envs": 2,
            "max_frame": 8000,
            "normalize_obs": True,
            "normalize_reward": True,
        },
        "agent": {
            "algorithm": {
                "name": "ppo_sil",
                "time_horizon": 64,
                "minibatch_size": 32,
                "sil_policy_coef": 0.1,
                "normalize_v_targets": True,
            },
            "memory": {"name": "replay", "max_size": 2000, "combined": True},
            "net": {**SMALL_NET, "shared": True},
        },
    },
    "ppo-fused": {
        "engine": "jax",
        "env": {"name": "CartPole-v1", "num_envs": 4, "max_frame": 24_000},
        "agent": {"algorithm": {"name": "ppo", "time_horizon": 64, "minibatch_size": 64}, "net": SMALL_NET},
    },
    "ppo-fused-continuous": {
        "engine": "jax",
        "env": {
            "name": "Pendulum-v1",
            "num_envs": 2,
            "max_frame": 24_000,
            "normalize_obs": True,
            "normalize_reward": True,
            "clip_reward": 5.0,
        },
        "agent": {
            "algorithm": {
                "name": "ppo",
                "time_horizon": 64,
                "minibatch_size": 32,
                "clip_eps": {"start": 0.3, "end": 0.1, "frames": 10_000},
                "clip_vloss": 0.5,
                "target_kl": 0.05,
            },
            "net": {**SMALL_NET, "shared": True, "optimizer": {"name": "rmsprop", "lr_end_fraction": 0.1}},
        },
    },
    "grpo": {
        "env": {"name": "copy", "max_frame": 8000, "text": {"arguments": {"style": "bare", "letters": 2}}},
        "agent": {
            "algorithm": {"name": "grpo", "group_size": 4, "batch_size": 32, "warmup": {"updates": 4}},
            "model": TINY_MODEL,
        },
    },
    "grpo-turns": {
        "env": {
            "name": "mixture",
            "max_frame": 8000,
            "text": {"mixture": GUESS_AND_COPY, "dialogue": {"strategy": "branching", "concurrency": 16}},
        },
        "agent": {
            "algorithm": {
                "name": "grpo",
                "group_size": 4,
                "batch_size": 32,
                "warmup": {"updates": 4, "batch_size": 16, "problems": 20},
            },
            "model": TINY_MODEL,
        },
    },
    "dapo-divergence": {
        "env": {"name": "mixture", "max_frame": 8000, "text": {"mixture": COPY_AND_SORT, "max_tokens": 4}},
        "agent": {
            "algorithm": {
                "name": "dapo",
                "group_size": 4,
                "batch_size": 32,
                "minibatch_size": 16,
                "training_epoch": 2,
                "kl": "k3",
                "kl_coef": 0.01,
                "entropy_coef": {"start": 0.02, "end": 0.0, "frames": 5000},
                "sft_coef": 0.1,
                "warmup": {"updates": 4, "problems": 50},
            },
            "model": {**TINY_MODEL, "dtype": "bfloat16", "optimizer": {"lr": 1e-3, "lr_end_fraction": 0.1}},
        },
    },
    "sft": {
        "env": {"name": "copy", "max_frame": 8000, "text": {"arguments": {"style": "bare", "letters": 2}}},
        "agent": {"algorithm": {"name": "sft", "batch_size": 32}, "model": TINY_MODEL},
    },
    "gkd": {
        "env": {"name": "copy", "max_frame": 8000, "text": {"arguments": {"style": "bare", "letters": 2}}},
        "agent": {
            "algorithm": {
                "name": "gkd",
                "batch_size": 32,
                "teacher": "self",
                "teacher_prompt": "answer",
                "teacher_top_k": 8,
            },
            "model": TINY_MODEL,
        },
    },
    "grpo-lora": {
        "env": {"name": "copy", "max_frame": 8000, "text": {"arguments": {"style": "bare", "letters": 2}}},
        "agent": {
            "algorithm": {"name": "grpo", "group_size": 4, "batch_size": 32, "kl": "k3", "kl_coef": 0.01},
            "model": {
                **TINY_MODEL,
                "dtype": "bfloat16",
                "lora": {"rank": 4, "dropout": 0.1},
                "gradient_checkpointing": True,
            },
        },
    },
    "gkd-packing": {
        "env": {"name": "copy", "max_frame": 8000, "text": {"arguments": {"style": "bare", "letters": 2}}},
        "agent": {
            "algorithm": {
                "name": "gkd",
                "batch_size": 32,
                "packing": True,
                "pass_tokens": 128,
                "teacher": "self",
                "teacher_prompt": "answer",
                "teacher_top_k": 8,
            },
            "model": {**TINY_MODEL, "gradient_checkpointing": True},
        },
    },
    "grpo-moving": {
        "env": {"name": "copy", "max_frame": 8000, "text": {"arguments": {"style": "bare", "letters": 2}}},
        "agent": {
            "algorithm": {
                "name": "grpo",
                "group_size": 4,
                "batch_size": 32,
                "minibatch_size": 16,
                "kl": "k3",
                "kl_coef": 0.1,
                "reference_updates": 7,
                "sft_coef": {"start": 0.5, "end": 0.1, "frames": 6000},
                "sft_data": {"path": str(Path(__file__).with_name("examples.jsonl"))},
                "sft_batch_size": 4,
            },
            "model": TINY_MODEL,
        },
    },
    "dqn-fused": {
        "engine": "jax",
        "env": {"name": "CartPole-v1", "num_envs": 2, "max_frame": 16_000, "normalize_obs": True},
        "agent": {
            "algorithm": {"name": "dqn", **DQN, "target_update": 200},
            "memory": {"name": "replay", "max_size": 3000},
            "net": {**SMALL_NET, "duelling": True},
        },
    },
    "sac-fused": {
        "engine": "jax",
        "env": {"name": "Pendulum-v1", "num_envs": 2, "max_frame": 12_000},
        "agent": {
            "algorithm": {"name": "sac", **TWIN},
            "memory": {"name": "replay", "max_size": 2000},
            "net": {**SMALL_NET, "optimizer": {"critic_lr": 1e-3, "lr_end_fraction": 0.1}},
        },
    },
}
# The jax engine with environments that step on the host: asked to, or because they have no other form.
CASES |= {
    "ppo-host": {**CASES["ppo-processes"], "engine": "jax"},
    "ppo-host-continuous": {
        **CASES["ppo-fused-continuous"],
        "env": {**CASES["ppo-continuous-normalised"]["env"], "vectorization": "serial"},
    },
    "ppo-host-mujoco": {**CASES["ppo-mujoco"], "engine": "jax"},
    "ppo-host-masked": {**CASES["ppo-masked"], "engine": "jax"},
    "dqn-host": {
        **CASES["dqn-fused"],
        "env": {"name": "CartPole-v1", "num_envs": 2, "max_frame": 8000, "vectorization": "serial"},
    },
    "dqn-host-box2d": {**CASES["dqn-box2d"], "engine": "jax"},
    "sac-host-mujoco": {**CASES["sac-mujoco"], "engine": "jax"},
    "ppo-host-atari": {**CASES["ppo-atari"], "engine": "jax"},
    "dqn-host-atari": {
        **CASES["dqn-atari"],
        "engine": "jax",
        "agent": {
            **CASES["dqn-atari"]["agent"],
            "algorithm": {"name": "dqn", "training_start": 300, "training_frequency": 4, "training_iter": 2},
        },
    },
    "sac-host-atari": {
        "engine": "jax",
        "env": {**ATARI, "num_envs": 2, "max_frame": 2000},
        "agent": {
            "algorithm": {"name": "sac", "training_start": 300, "training_frequency": 8, "training_iter": 1},
            "memory": {"name": "replay", "batch_size": 16, "max_size": 600},
            "net": SMALL_CNN,
        },
        "meta": FEW_GAMES,
    },
    "dqn-host-prioritised": {
        **CASES["dqn-duelling-prioritised"],
        "engine": "jax",
        "env": {**CASES["dqn-duelling-prioritised"]["env"], "vectorization": "serial"},
    },
    "ppo-host-gru": {**CASES["ppo-gru"], "engine": "jax"},
    "ppo-host-lstm-atari": {
        **CASES["ppo-atari"],
        "engine": "jax",
        "agent": {
            "algorithm": {"name": "ppo", "time_horizon": 32, "minibatch_size": 32, "training_epoch": 2},
            "net": {**SMALL_CNN, "recurrent": 16, "cell": "lstm"},
        },
    },
    "td3-host": {
        **CASES["td3"],
        "engine": "jax",
        "env": {**CASES["td3"]["env"], "vectorization": "serial"},
        "agent": {**CASES["td3"]["agent"], "net": SMALL_NET},
    },
    "crossq-host": {
        **CASES["crossq"],
        "engine": "jax",
        "env": {**CASES["crossq"]["env"], "vectorization": "serial"},
    },
    "sac-host-discrete": {
        **CASES["sac-fused"],
        "env": {"name": "CartPole-v1", "num_envs": 1, "max_frame": TWIN_FRAMES, "vectorization": "serial"},
        "meta": TWIN_META,
    },
}
# With every change: one case of each engine, on policy and off policy. The others before a release.
OFTEN = ("ppo", "dqn", "ppo-fused", "ppo-host", "grpo")
# Who is killed, resumed and still the same run can be stopped, and gives the same bytes for the same seed: these are
# tried by themselves with these cases, and with the others among the slow ones.
IMPLIED = {
    "test_stopped_once": ("ppo",),
    "test_stopping_at_a_rung": ("ppo", "ppo-fused"),
    "test_the_same_seed_gives": ("ppo",),
    "test_another_seed_takes": ("ppo",),
}
# The module that a case's environment needs, and the reason given when it is not installed.
NEEDS = {
    "box2d": "Box2D",
    "mujoco": "mujoco",
    "atari": "ale_py",
    "fused": "jax",
    "host": "jax",
    "grpo": "transformers",
    "dapo": "transformers",
    "sft": "transformers",
    "gkd": "transformers",
}


def _marks(name: str) -> list[pytest.MarkDecorator]:
    """`tests/conftest.py` sends all tests of a case to one worker, so that they share `whole`."""
    return [] if name in OFTEN else [pytest.mark.slow]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what another test implies as slow, but for the cases named above."""
    for item in items:
        test, _, name = item.name.rstrip("]").partition("[")
        if any(test.startswith(implied) and name not in tried for implied, tried in IMPLIED.items()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", params=[pytest.param(name, marks=_marks(name)) for name in CASES])
def case(request: pytest.FixtureRequest) -> Spec:
    """The spec of one case."""
    for family, module in NEEDS.items():
        if family in request.param and find_spec(module) is None:
            pytest.skip(f"{module} is not installed: scripts/uv sync --all-extras")
    return Spec.model_validate({"name": request.param, "meta": META, **CASES[request.param]})


@pytest.fixture(scope="session")
def whole(case: Spec, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The case trained once from start to end, undisturbed: what every other way must equal."""
    run = create(tmp_path_factory.mktemp(case.name) / "whole", case)
    assert ended(start_cold(run)) == 0
    return run


def create(path: Path, spec: Spec, seed: int = 7) -> Run:
    """A fresh session directory for `spec`."""
    return Run.create(path, name=spec.name, spec=spec.model_dump(mode="json"), seed=seed, session=0, threads=1)


def start(run: Run, *arguments: str) -> WarmProcess:
    """The session as a process of its own."""
    return WarmProcess(["-m", "operant", "session", str(run.path), *arguments], run.path / "errors.txt")


def start_cold(run: Run) -> subprocess.Popen[bytes]:
    """The session as `operant train` starts it: a new interpreter."""
    argv = [sys.executable, "-m", "operant", "session", str(run.path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(run: Run, *arguments: str) -> int:
    """Run the session to its end and return the exit code."""
    return ended(start(run, *arguments))


def ended(process: WarmProcess | subprocess.Popen[bytes]) -> int:
    """Wait for a session that may be done or stopped, but not failed; returns its exit code."""
    _, errors = process.communicate(timeout=240)
    if process.returncode not in (0, 4):
        raise AssertionError(errors.decode())
    return process.returncode


def differing(first: Run, second: Run) -> str | None:
    """Where rows and episodes without timing, or checkpoints, are not equal bit for bit; None where all are."""
    return difference(Records.of(first), Records.of(second))
