"""The settings that the peer comparison gives to both libraries, each in its own words.

They are CleanRL's for CartPole, the common ground of published comparisons, but for value clipping:
SB3 and CleanRL mean different losses by it, so neither library clips here. Both use Huber for DQN.
"""

from __future__ import annotations

from typing import Any

STEPS = {"ppo": 100_352, "dqn": 50_000}

OPERANT: dict[str, dict[str, Any]] = {
    "ppo": {
        "env": {"name": "CartPole-v1", "num_envs": 4, "max_frame": STEPS["ppo"]},
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
    "dqn": {
        "env": {"name": "CartPole-v1", "num_envs": 1, "max_frame": STEPS["dqn"]},
        "agent": {
            "algorithm": {
                "name": "dqn",
                "double": False,
                "training_start": 10_000,
                "training_frequency": 10,
                "target_update": 500,
                "epsilon": {"start": 1.0, "end": 0.05, "frames": STEPS["dqn"] // 2},
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
}


def linear_to_zero(start: float) -> Any:
    """SB3's form of a learning rate that falls to zero over the run."""
    return lambda left: left * start


SB3: dict[str, dict[str, Any]] = {
    "ppo": {
        "n_steps": 128,
        "batch_size": 128,
        "n_epochs": 4,
        "learning_rate": linear_to_zero(2.5e-4),
        "ent_coef": 0.01,
        "vf_coef": 0.5,
    },
    "dqn": {
        "learning_rate": 2.5e-4,
        "buffer_size": 10_000,
        "learning_starts": 10_000,
        "batch_size": 128,
        "train_freq": 10,
        "gradient_steps": 1,
        "target_update_interval": 500,
        "exploration_fraction": 0.5,
        "exploration_final_eps": 0.05,
        "policy_kwargs": {"net_arch": [120, 84]},
    },
}
SB3_ENVS = {"ppo": 4, "dqn": 1}
