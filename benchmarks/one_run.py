"""Trains one library once and prints one JSON line; `versus_sb3.py` starts it as a fresh process each time.

The clock covers training only: not imports, not construction, not the evaluation afterwards. For
Operant it does cover metric rows, episode records and checkpoints on disk; SB3 writes none of them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

EVALUATION_EPISODES = 50
EVALUATION_SEED = 1_000_000


def cpu_seconds() -> float:
    """CPU time of this process, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def timed(train: Callable[[], None]) -> dict[str, float]:
    """Wall and CPU seconds of `train`."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    train()
    return {"seconds": time.perf_counter() - wall, "cpu_seconds": cpu_seconds() - cpu}


def run_operant(algorithm: str, seed: int) -> dict[str, Any]:
    """Train and evaluate with Operant, in a real run directory."""
    from benchmarks.matched import OPERANT
    from operant.engines import engine_of
    from operant.engines.deep.learners import build_learner, prepare_torch
    from operant.engines.deep.loop import run_session
    from operant.run.checkpoint import list_checkpoints
    from operant.run.run import Run
    from operant.spec.schema import Spec

    meta = {"eval_frequency": 10**9, "eval_episodes": 1, "final_episodes": 1}
    spec = Spec.model_validate({"name": algorithm, "meta": meta, **OPERANT[algorithm]})
    with tempfile.TemporaryDirectory() as folder:
        resolved = spec.model_dump(mode="json")
        run = Run.create(Path(folder) / "run", name=algorithm, spec=resolved, seed=seed, session=0, threads=1)
        with run.session() as session:
            learner = build_learner(spec, session.seeds, prepare_torch(spec, 1))
            clock = timed(lambda: run_session(session, learner))
        newest = list_checkpoints(run.checkpoints)[-1]
        returns = {
            kind: _mean(
                [e.score for e in engine_of(spec).evaluate(run, newest, EVALUATION_EPISODES, EVALUATION_SEED, greedy)]
            )
            for kind, greedy in (("greedy", True), ("sampled", False))
        }
    return {"steps": learner.tracker.frames, **clock, **returns}


def run_sb3(algorithm: str, seed: int) -> dict[str, Any]:
    """Train and evaluate with Stable-Baselines3, through its public interface."""
    import torch
    from stable_baselines3 import DQN, PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    from benchmarks.matched import SB3, SB3_ENVS, STEPS

    torch.set_num_threads(1)
    env = make_vec_env("CartPole-v1", n_envs=SB3_ENVS[algorithm], seed=seed)
    model = {"ppo": PPO, "dqn": DQN}[algorithm]("MlpPolicy", env, seed=seed, device="cpu", **SB3[algorithm])
    clock = timed(lambda: model.learn(STEPS[algorithm]) and None)
    returns = {}
    for kind, greedy in (("greedy", True), ("sampled", False)):
        fresh = make_vec_env("CartPole-v1", n_envs=1, seed=EVALUATION_SEED)
        mean, _ = evaluate_policy(model, fresh, EVALUATION_EPISODES, deterministic=greedy)
        returns[kind] = mean
    return {"steps": model.num_timesteps, **clock, **returns}


def _mean(values: list[float | None]) -> float:
    return sum(value or 0.0 for value in values) / len(values)


def main() -> None:
    """`python -m benchmarks.one_run operant ppo --seed 1`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=("operant", "sb3"))
    parser.add_argument("algorithm", choices=("ppo", "dqn"))
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    measured = (run_operant if asked.library == "operant" else run_sb3)(asked.algorithm, asked.seed)
    print(json.dumps({"library": asked.library, "algorithm": asked.algorithm, "seed": asked.seed, **measured}))


if __name__ == "__main__":
    main()
