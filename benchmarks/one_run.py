"""Trains one library once and prints one JSON line; `versus_peers.py` starts it as a fresh process each time.

It imports nothing but the library that it trains, numpy and Gymnasium, so that a peer may have a Python of its own.

The clock covers training only: not imports, not construction, not the evaluation afterwards. For
Operant it does cover metric rows, episode records and checkpoints on disk; the peers write none of
them. The random play that every Operant run begins with, the zero of its scores, and the two greedy
episodes that it ends with are no training either: each is played once more, alone, and its time is
taken off. What JAX compiles, for Operant's jax engine and for SBX, is within the clock and comes from
no cache. Tianshou plays one test episode before and one after training within it. All are then judged
on the same episodes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.clock import THREADS, Stopwatch, limit_xla, timed
from benchmarks.run_cleanrl import run_cleanrl, run_cleanrl_jax
from benchmarks.run_compiled import run_purejaxrl, run_rejax
from benchmarks.run_rlox import run_rlox
from benchmarks.same_episodes import FIRST_SEED, KINDS, peer_return


def run_operant(name: str, seed: int, steps: int, episodes: int) -> dict[str, Any]:
    """Train and evaluate with Operant, in a real run directory and the environment that its sessions have."""
    from operant.launch.budget import library_environment

    os.environ.update(library_environment(int(THREADS)))
    from benchmarks.matched import operant_spec
    from operant.engines import engine_of
    from operant.engines.torch.learners import build_learner, prepare_torch
    from operant.engines.torch.loop import run_session
    from operant.envs.vector.evaluation import play, random_return
    from operant.run.checkpoint import list_checkpoints
    from operant.run.run import Run
    from operant.spec.schema import Spec

    threads = int(THREADS)
    spec = Spec.model_validate(operant_spec(name, steps))
    with tempfile.TemporaryDirectory() as folder:
        resolved = spec.model_dump(mode="json")
        run = Run.create(Path(folder) / "run", name=name, spec=resolved, seed=seed, session=0, threads=threads)
        with run.session() as session:
            learner = build_learner(spec, session.seeds, prepare_torch(spec, threads))
            random_play = timed(lambda: random_return(spec.env))
            whole = timed(lambda: run_session(session, learner))
            # At its end a run plays this very episode twice: as its last evaluation and as its final one.
            greedy_play = timed(lambda: list(play(spec.env, learner.actor.greedy, 1, spec.meta.eval_seed)))
            clock = {key: seconds - random_play[key] - 2 * greedy_play[key] for key, seconds in whole.items()}
        newest = list_checkpoints(run.checkpoints)[-1]
        returns = {
            kind: fmean([e.score or 0.0 for e in engine_of(spec).evaluate(run, newest, episodes, FIRST_SEED, greedy)])
            for kind, greedy in KINDS.items()
        }
    return {"steps": learner.tracker.frames, **clock, **returns}


def run_operant_fused(name: str, seed: int, steps: int, episodes: int) -> dict[str, Any]:
    """The jax engine with the environment compiled too, into one program with the learner."""
    return run_operant_jax(name, seed, steps, episodes, "auto")


def run_operant_jax(name: str, seed: int, steps: int, episodes: int, vectorization: str = "serial") -> dict[str, Any]:
    """The same with the jax engine, on the same Gymnasium environments."""
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp()
    from benchmarks.matched import operant_spec
    from operant.engines import engine_of
    from operant.envs.vector.evaluation import random_return
    from operant.run.checkpoint import list_checkpoints
    from operant.run.run import Run
    from operant.spec.schema import Spec

    document = operant_spec(name, steps)
    document["env"]["vectorization"] = vectorization
    spec = Spec.model_validate({**document, "engine": "jax"})
    engine = engine_of(spec)
    with tempfile.TemporaryDirectory() as folder:
        resolved = spec.model_dump(mode="json")
        run = Run.create(Path(folder) / "run", name=name, spec=resolved, seed=seed, session=0, threads=int(THREADS))
        whole, random_play = timed(lambda: engine.train(run)), timed(lambda: random_return(spec.env))
        newest = list_checkpoints(run.checkpoints)[-1]
        returns = {
            kind: fmean([e.score or 0.0 for e in engine.evaluate(run, newest, episodes, FIRST_SEED, greedy)])
            for kind, greedy in KINDS.items()
        }
    clock = {key: seconds - random_play[key] for key, seconds in whole.items()}
    return {"steps": newest.at.frames, **clock, **returns}


def run_sbx(name: str, seed: int, steps: int, episodes: int) -> dict[str, Any]:
    """Train and evaluate with SBX, which is Stable-Baselines3 in JAX."""
    limit_xla()
    import sbx

    return _run_baselines(sbx, name, seed, steps, episodes)


def run_sb3(name: str, seed: int, steps: int, episodes: int) -> dict[str, Any]:
    """Train and evaluate with Stable-Baselines3, through its public interface."""
    import stable_baselines3

    return _run_baselines(stable_baselines3, name, seed, steps, episodes, device="cpu")


def _run_baselines(package: Any, name: str, seed: int, steps: int, episodes: int, **further: Any) -> dict[str, Any]:
    import numpy as np
    import torch
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.noise import NormalActionNoise
    from stable_baselines3.common.vec_env import VecNormalize

    from benchmarks.matched import CELLS, EXPLORATION_NOISE, OPERANT, SB3

    torch.set_num_threads(int(THREADS))
    cell = CELLS[name]
    normalizes = OPERANT[name].get("env", {}).get("normalize_obs", False)
    make = _sb3_env(cell.env)
    env = make_vec_env(make, n_envs=cell.envs, seed=seed)
    env = VecNormalize(env) if normalizes else env
    algorithm = getattr(package, {"crossq": "CrossQ"}.get(cell.algorithm, cell.algorithm.upper()))
    if cell.algorithm == "td3":
        further["action_noise"] = NormalActionNoise(np.zeros(1), np.full(1, EXPLORATION_NOISE))
    policy = "CnnPolicy" if cell.env.startswith("ALE/") else "MlpPolicy"
    model = algorithm(policy, env, seed=seed, **further, **SB3[name])
    clock = timed(lambda: model.learn(steps))

    def act(seen: Any, greedy: bool) -> Any:
        seen = env.normalize_obs(seen) if isinstance(env, VecNormalize) else seen
        return model.predict(seen, deterministic=greedy)[0]

    world = make()
    returns = {kind: peer_return(world, partial(act, greedy=greedy), episodes) for kind, greedy in KINDS.items()}
    return {"steps": model.num_timesteps, **clock, **returns}


def _sb3_env(name: str) -> Callable[[], Any]:
    """What SB3 makes environments by: Atari games with the very preprocessing that ours have."""
    import gymnasium as gym

    if not name.startswith("ALE/"):
        return partial(gym.make, name)
    import ale_py
    from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

    gym.register_envs(ale_py)
    return lambda: FrameStackObservation(AtariPreprocessing(gym.make(name, frameskip=1)), 4)


def run_tianshou(name: str, seed: int, steps: int, episodes: int) -> dict[str, Any]:
    """Train and evaluate with Tianshou 2, through its high-level interface."""
    import logging

    import torch

    from benchmarks.matched import CELLS

    torch.set_num_threads(int(THREADS))
    os.chdir(tempfile.mkdtemp())
    experiment = _tianshou_experiment(name, seed, steps)
    logging.disable(logging.INFO)
    build, built = experiment.create_experiment_world, []

    def build_then_start(*given: Any, **named: Any) -> Any:
        built.append(build(*given, **named))
        built.append(Stopwatch())
        return built[0]

    experiment.create_experiment_world = build_then_start
    with redirect_stdout(sys.stderr):
        experiment.run()
    world, watch = built
    clock = watch.read()
    policy, cell = world.algorithm.policy, CELLS[name]
    returns = {kind: _tianshou_return(policy, cell.env, episodes, greedy) for kind, greedy in KINDS.items()}
    return {"steps": steps, **clock, **returns}


def _tianshou_experiment(name: str, seed: int, steps: int) -> Any:
    """The experiment of a cell, built but not started."""
    from tianshou.highlevel import config, env, experiment
    from tianshou.highlevel.params import algorithm_params, alpha

    from benchmarks.matched import CELLS, TIANSHOU

    cell, settings = CELLS[name], TIANSHOU[name]
    training, params = dict(settings["training"]), dict(settings["params"])
    kind = config.OnPolicyTrainingConfig if cell.algorithm == "ppo" else config.OffPolicyTrainingConfig
    training |= {"num_training_envs": cell.envs, "max_epochs": 1, "num_test_envs": 1, "test_step_num_episodes": 1}
    training["epoch_num_steps"] = steps - training.get("start_timesteps", 0)
    factory = env.EnvFactoryRegistered(task=cell.env, venv_type=env.VectorEnvType.DUMMY)
    quiet = experiment.ExperimentConfig(
        seed=seed, device="cpu", persistence_enabled=False, watch=False, log_file_enabled=False
    )
    builders: dict[str, Callable[..., Any]] = {
        "ppo": experiment.PPOExperimentBuilder,
        "dqn": experiment.DQNExperimentBuilder,
        "sac": experiment.SACExperimentBuilder,
    }
    builder, hidden = builders[cell.algorithm](factory, quiet, kind(**training)), settings["hidden"]
    if cell.algorithm == "dqn":
        builder = builder.with_dqn_params(algorithm_params.DQNParams(**params)).with_model_factory_default(hidden)
    elif cell.algorithm == "ppo":
        builder = builder.with_ppo_params(algorithm_params.PPOParams(**params))
        builder = builder.with_actor_factory_default(hidden).with_critic_factory_default(hidden)
    else:
        learnt = alpha.AutoAlphaFactoryDefault(lr=params["actor_lr"])
        builder = builder.with_sac_params(algorithm_params.SACParams(alpha=learnt, **params))
        builder = builder.with_actor_factory_default(hidden).with_common_critic_factory_default(hidden)
    return builder.build()


def _tianshou_return(policy: Any, env: str, episodes: int, greedy: bool) -> float:
    """Mean return of a trained policy; sampled play of DQN explores as in training."""
    import gymnasium as gym

    policy.eval()
    if hasattr(policy, "set_eps_inference"):
        policy.set_eps_inference(0.0 if greedy else policy.eps_training)
    else:
        policy.deterministic_eval = greedy
    return peer_return(gym.make(env), policy.compute_action, episodes)


RUNNERS: dict[str, Callable[..., dict[str, Any]]] = {
    "operant": run_operant,
    "operant-jax": run_operant_jax,
    "operant-fused": run_operant_fused,
    "sb3": run_sb3,
    "sbx": run_sbx,
    "tianshou": run_tianshou,
    "cleanrl": run_cleanrl,
    "cleanrl-jax": run_cleanrl_jax,
    "rlox": run_rlox,
    "rejax": run_rejax,
    "purejaxrl": run_purejaxrl,
}
PACKAGES = ("torch", "jax", "numpy", "gymnasium", "stable-baselines3", "sbx-rl", "tianshou", "rlox", "rejax", "gymnax")


def versions() -> dict[str, str]:
    """Of the packages that matter to a rate and that this Python has."""
    found = {}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def main() -> None:
    """`python -m benchmarks.one_run operant ppo-cartpole --seed 1`."""
    from benchmarks.matched import CELLS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=list(RUNNERS))
    parser.add_argument("cell", choices=list(CELLS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, help="how long it trains, unless as long as the cell says")
    parser.add_argument("--episodes", type=int, help="how many it is judged on, unless as many as the cell says")
    parser.add_argument("--checkout", type=Path, help="of the repository of a peer that is no package")
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    cell = CELLS[asked.cell]
    further = {} if asked.checkout is None else {"checkout": asked.checkout}
    measured = RUNNERS[asked.library](
        asked.cell, asked.seed, asked.steps or cell.steps, asked.episodes or cell.episodes, **further
    )
    row = {"library": asked.library, "cell": asked.cell, "seed": asked.seed, **measured, "versions": versions()}
    print(json.dumps(row))


if __name__ == "__main__":
    main()
