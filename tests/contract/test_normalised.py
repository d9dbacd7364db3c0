"""Running statistics survive a kill: every algorithm that normalises, with the one environment that moves them most.

With one environment a step is one sample, so statistics that a restart lost, or counted twice, show
at once in everything that follows.
"""

from __future__ import annotations

import random
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from operant.engines.jax.compatibility import unsupported
from operant.run.run import Run
from operant.spec.schema import Spec
from operant.spec.settings.algorithms import ALGORITHMS, with_learner
from tests.contract.conftest import SMALL_NET, create, differing, finish
from tests.contract.test_resume import kill_at_random

ROLLOUT = {"time_horizon": 64, "minibatch_size": 32}
OFTEN = {"training_frequency": 8}
REPLAY = {"training_start": 300, "training_frequency": 4, "training_iter": 1}
SETTINGS: dict[str, dict[str, Any]] = {
    "ppo": ROLLOUT,
    "ppo_sil": ROLLOUT,
    "a2c": OFTEN,
    "sil": OFTEN,
    "sarsa": OFTEN,
    "reinforce": {"training_frequency": 2},
    "dqn": REPLAY,
    "sac": REPLAY,
    "td3": REPLAY,
    "crossq": {**REPLAY, "renorm_warm_up": 300},
}
DISCRETE = ("dqn", "sarsa")
FRAMES = 2000
META = {"log_frequency": 100, "eval_frequency": 2000, "save_frequency": 300, "eval_episodes": 1, "final_episodes": 2}


def spec_of(engine: str, algorithm: str, reward: bool) -> Spec:
    env = {
        "name": "Acrobot-v1" if algorithm in DISCRETE else "Pendulum-v1",
        "num_envs": 1,
        "max_t": 60,
        "max_frame": FRAMES * (4 if engine == "jax" else 1),
        "normalize_obs": True,
        "normalize_reward": reward,
    }
    agent: dict[str, Any] = {"algorithm": {"name": algorithm, **SETTINGS[algorithm]}, "net": SMALL_NET}
    if ALGORITHMS[algorithm].USES_MEMORY:
        agent["memory"] = {"name": "replay", "max_size": 2000}
    return Spec.model_validate({"name": algorithm, "engine": engine, "env": env, "agent": agent, "meta": META})


def normalising() -> list[tuple[str, str, bool]]:
    """Every algorithm that takes `normalize_obs`, and whether it takes `normalize_reward` as well."""
    found = []
    for engine, names in (("torch", SETTINGS), ("jax", with_learner("jax"))):
        for name in names:
            try:
                spec = spec_of(engine, name, reward=True)
                taken = engine == "torch" or not list(unsupported(spec))
            except ValidationError:
                taken = False
            found.append((engine, name, taken))
    return found


def test_no_algorithm_that_normalises_is_left_out():
    for name, algorithm in ALGORITHMS.items():
        if (
            algorithm.engine() == "torch"
            and "env.normalize_obs" not in algorithm.model_validate({"name": name}).inert()
        ):
            assert name in SETTINGS, f"{name} takes env.normalize_obs: add it here"
    assert sum(taken for _, _, taken in normalising()) == len(SETTINGS), "all but reinforce, and PPO in JAX"


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "algorithm", "reward"), normalising())
def test_killed_and_resumed_with_statistics_of_one_environment(
    engine: str, algorithm: str, reward: bool, tmp_path: Path
):
    if engine == "jax" and find_spec("jax") is None:
        pytest.skip("jax is not installed: scripts/uv sync --all-extras")
    spec = spec_of(engine, algorithm, reward)
    whole, broken = (create(tmp_path / name, spec) for name in ("whole", "broken"))
    finish(whole)
    dice = random.Random(algorithm)
    assert sum(kill_at_random(broken, dice, 2) for _ in range(2)), "it ended before it could be killed"
    finish(broken)
    assert broken.state == "done"
    assert differing(broken, whole) is None
    assert statistics(whole) >= {"reward/count", "obs/count"} if reward and engine == "torch" else True


def statistics(run: Run) -> set[str]:
    """The names of the arrays in the newest checkpoint."""
    from safetensors.numpy import load_file

    newest = sorted(p for p in run.checkpoints.iterdir() if p.name.isdigit())[-1]
    return {name for file in newest.glob("*.safetensors") for name in load_file(file)}
