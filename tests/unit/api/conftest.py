"""Small trained runs of every kind of policy, each trained once where it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import operant
from tests.warm import use_warm_sessions

META = {
    "max_session": 1,
    "log_frequency": 10_000,
    "eval_frequency": 10_000,
    "save_frequency": 10_000,
    "eval_episodes": 2,
    "final_episodes": 4,
}
PPO = {"name": "ppo", "time_horizon": 64, "minibatch_size": 64}
TWIN = {"name": "sac", "training_start": 100, "training_frequency": 4, "training_iter": 1}
DQN = {"name": "dqn", "training_start": 100, "training_frequency": 4}
REPLAY = {"name": "replay", "max_size": 1000}
CARTPOLE = {"name": "CartPole-v1", "num_envs": 4, "max_frame": 1024}
PENDULUM = {"name": "Pendulum-v1", "num_envs": 4, "max_frame": 1024}

KINDS: dict[str, dict[str, Any]] = {
    "ppo": {"env": CARTPOLE, "agent": {"algorithm": PPO, "net": {"hidden": [32, 32]}}},
    "ppo-continuous": {
        "env": {**PENDULUM, "normalize_obs": True},
        "agent": {"algorithm": PPO, "net": {"hidden": [32], "activation": "gelu", "layer_norm": True}},
    },
    "sac": {"env": PENDULUM, "agent": {"algorithm": TWIN, "memory": REPLAY, "net": {"hidden": [32, 32]}}},
    "dqn": {
        "env": {**CARTPOLE, "normalize_obs": True},
        "agent": {"algorithm": DQN, "memory": REPLAY, "net": {"hidden": [32, 32], "duelling": True}},
    },
    "ppo-gru": {
        "env": {**CARTPOLE, "normalize_obs": True},
        "agent": {"algorithm": PPO, "net": {"type": "gru", "hidden": [16], "recurrent": 16}},
    },
    "ppo-lstm": {
        "env": PENDULUM,
        "agent": {"algorithm": PPO, "net": {"type": "lstm", "hidden": [16], "recurrent": 16, "layers": 2}},
    },
    "jax-ppo": {"env": {**CARTPOLE, "normalize_obs": True}, "agent": {"algorithm": PPO}, "engine": "jax"},
    "jax-sac": {"env": PENDULUM, "agent": {"algorithm": TWIN, "memory": REPLAY}, "engine": "jax"},
    "jax-dqn": {
        "env": CARTPOLE,
        "agent": {"algorithm": DQN, "memory": REPLAY, "net": {"hidden": [32], "duelling": True}},
        "engine": "jax",
    },
    "jax-lstm": {
        "env": {**PENDULUM, "vectorization": "serial"},
        "agent": {"algorithm": PPO, "net": {"type": "lstm", "hidden": [16], "recurrent": 16, "layers": 2}},
        "engine": "jax",
    },
    "random": {"env": CARTPOLE, "agent": {"algorithm": {"name": "random"}}},
}
Trained = Callable[[str], operant.Session]


@pytest.fixture(autouse=True)
def _warm_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """For one test only: other tests of this process mean to start sessions from nothing."""
    use_warm_sessions(monkeypatch)


@pytest.fixture(scope="package")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """The one session of a kind."""
    made: dict[str, operant.Session] = {}

    def session_of(kind: str) -> operant.Session:
        if kind.startswith("jax"):
            pytest.importorskip("jax")
        if kind not in made:
            spec = {"name": kind.replace("-", "_"), "meta": META, **KINDS[kind]}
            made[kind] = operant.train(spec, root=tmp_path_factory.mktemp("runs"), progress=False).sessions[0]
        return made[kind]

    return session_of
