"""The PyTorch engine: learners on Gymnasium environments, one readable file per algorithm.

This module is the engine's whole face. It imports nothing heavy: `validate` needs Gymnasium and
the others need torch, each from inside its function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from operant.engines.torch.trained_policy import TrainedPolicy
    from operant.run.checkpoint import Checkpoint
    from operant.run.episode import Episode
    from operant.run.expense import Estimate
    from operant.run.processes.distributed_config import DistributedConfig
    from operant.run.run import Run
    from operant.spec.schema import Spec

# What `train` imports, and what Gymnasium imports when it makes the environments of most searches.
SESSION_MODULES = (
    "gymnasium.envs.classic_control",
    "gymnasium.vector",
    "operant.engines.torch.distributed",
    "operant.engines.torch.learners",
    "operant.engines.torch.loop",
    "operant.envs.vector.backend",
    "operant.run.session",
    "operant.spec.stored",
)


def validate(spec: Spec) -> None:
    """Refuse, before any work, what this machine lacks, and an environment that is unknown or does not fit."""
    from operant.engines.torch.compatibility import check_compatibility

    if spec.meta.device == "cuda":
        from operant.engines.torch.learners import choose_device

        choose_device(spec)
    if spec.meta.compile or spec.meta.precision != "float32":
        from operant.engines.torch.accelerate import check_machine

        check_machine(spec.meta)
    check_compatibility(spec)


def train(run: Run, until: int | None = None) -> None:
    """Train one session until `until` frames (the spec's whole budget by default), from its newest checkpoint."""
    from operant.engines.torch.distributed import led
    from operant.engines.torch.learners import build_learner, prepare_torch
    from operant.engines.torch.loop import run_session
    from operant.envs.vector.backend import choose_backend
    from operant.run.processes.distributed_config import distributed_config
    from operant.run.processes.leadership import Leadership
    from operant.spec.stored import stored

    spec = stored(run.spec)
    device = prepare_torch(spec, run.threads)
    with Leadership(distributed_config(), "torch") as leadership, run.session(until) as session:
        session.use_gpus(spec.meta.processes if device.type == "cuda" else 0)
        session.run.record(vectorization=str(choose_backend(spec.env, spec.env.num_envs)))
        start = session.latest.path if session.latest else None
        with leadership.of([session]), led(session.run, spec, start, leadership):
            with session.phase("building"):
                learner = build_learner(spec, session.seeds, device)
            run_session(session, learner)


def follower(world: DistributedConfig, local_id: int) -> Callable[[dict[str, Any]], object]:
    """What obeys the orders of process 0, as another process of its session."""
    from operant.engines.torch.follower import obey

    return partial(obey, world, local_id)


def preload() -> None:
    """Import what sessions need, so that processes forked from this one need not. Starts no thread, opens no device."""
    import torch

    from operant.spec.settings.algorithms import ALGORITHMS

    for module in SESSION_MODULES:
        import_module(module)
    for algorithm in ALGORITHMS.values():
        if algorithm.engine() == "torch":
            algorithm.learner("torch")
    # The first optimizer of a process loads torch's compiler, which takes seconds.
    torch.optim.Adam([torch.zeros(1)])


def evaluate(run: Run, checkpoint: Checkpoint, episodes: int, seed: int, greedy: bool = True) -> Iterator[Episode]:
    """Play a checkpoint's policy once for each of the seeds `seed`, `seed + 1`, ...; none may be of its training."""
    from operant.engines.torch.learners import load_actor
    from operant.engines.torch.loop import as_episode
    from operant.envs.vector.episode_seeds import refuse_trained_seeds
    from operant.envs.vector.evaluation import play
    from operant.spec.stored import stored

    spec = stored(run.spec)
    refuse_trained_seeds(run, spec, checkpoint.path, range(seed, seed + episodes))
    act = load_actor(spec, checkpoint.path).player(seed, greedy)
    for ended in play(spec.env, act, episodes, seed):
        yield as_episode(ended, spec.env.name, "eval", checkpoint.at)


def load_policy(run: Run, checkpoint: Checkpoint, device: str = "cpu") -> TrainedPolicy:
    """A checkpoint's policy as a function of numpy arrays."""
    from operant.engines.torch.trained_policy import TrainedPolicy
    from operant.spec.stored import stored

    return TrainedPolicy(stored(run.spec), checkpoint.path, device)


def estimate(spec: Spec) -> Estimate:
    """What a session would cost, measured by a second of real training in memory."""
    from operant.engines.torch.cost import measure

    return measure(spec)


def watch(run: Run, checkpoint: Checkpoint, episodes: int, seed: int, sink: str | Path) -> list[Episode]:
    """Show a checkpoint's policy at play in a window (`sink` is "window"), or as a .gif or .mp4 file."""
    from operant.engines.torch.video import show

    return show(run, checkpoint, episodes, seed, sink)
