"""The JAX engine: environment, rollout and update in one compiled program; or acting and learning around the host's.

This module is the engine's whole interface. It imports nothing heavy: each function imports what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from operant.install import missing_package

if TYPE_CHECKING:
    from operant.engines.jax.trained_policy import TrainedPolicy
    from operant.engines.jax.tuning import Tried
    from operant.run.checkpoint import Checkpoint
    from operant.run.episode import Episode
    from operant.run.expense import Estimate
    from operant.run.processes.distributed_config import DistributedConfig
    from operant.run.run import Run
    from operant.spec.schema import Spec


def validate(spec: Spec) -> None:
    """Refuse, before any work, what this machine or this engine lacks, and an incompatible environment."""
    if find_spec("jax") is None:
        raise missing_package("jax", "the jax engine")
    from operant.engines.jax.compatibility import check_compatibility
    from operant.engines.jax.preallocation import memory_as_needed

    with memory_as_needed():
        check_compatibility(spec)


def train(run: Run, until: int | None = None) -> None:
    """Train one session until `until` frames (the spec's whole budget by default), from its newest checkpoint."""
    train_together([run], until)


def train_together(runs: Sequence[Run], until: int | None = None) -> None:
    """Train several sessions in this process, of one trial or more, as lanes of one program.

    Each writes its own directory, and what it writes does not depend on the other trials.
    """
    from operant.engines.jax.lanes import train_groups

    train_groups(runs, until)


def follower(world: DistributedConfig, local_id: int) -> Callable[[dict[str, Any]], object]:
    """What obeys the orders of process 0, as another process of its sessions."""
    del local_id
    from operant.engines.jax.processes import FollowingProcess

    return FollowingProcess(world).obey


def has_lanes(spec: Spec) -> bool:
    """Whether sessions can be lanes of one program: not where their environments step on the host."""
    from operant.envs.functional.find import steps_on_host

    return not steps_on_host(spec.env)


def program_key(spec: dict[str, Any]) -> str:
    """What of a resolved spec decides the program: trials with the same key can train together."""
    from operant.engines.jax.lanes import program_key

    return program_key(spec)


def evaluate(run: Run, checkpoint: Checkpoint, episodes: int, seed: int, greedy: bool = True) -> Iterator[Episode]:
    """Play a checkpoint's policy once for each of the seeds `seed`, `seed + 1`, ...; none may be of its training."""
    from operant.engines.jax.programs import evaluate_checkpoint
    from operant.engines.jax.trainer import as_episode
    from operant.envs.vector.episode_seeds import refuse_trained_seeds
    from operant.spec.stored import stored

    spec = stored(run.spec)
    refuse_trained_seeds(run, spec, checkpoint.path, range(seed, seed + episodes))
    for ended in evaluate_checkpoint(spec, checkpoint.path, episodes, seed, greedy):
        yield as_episode(ended, spec.env.name, "eval", checkpoint.at)


def load_policy(run: Run, checkpoint: Checkpoint, device: str = "cpu") -> TrainedPolicy:
    """A checkpoint's policy as a function of numpy arrays."""
    from operant.engines.jax.trained_policy import TrainedPolicy
    from operant.spec.stored import stored

    return TrainedPolicy(stored(run.spec), checkpoint.path, device)


def estimate(spec: Spec) -> Estimate:
    """What a session would cost as one of its trial, measured by a second of real training in memory."""
    from operant.engines.jax.cost import measure

    return measure(spec)


def tune(spec: Spec) -> Iterator[Tried]:
    """Frames per second with more and more environments, each as it is measured."""
    from operant.engines.jax.tuning import tune

    yield from tune(spec)


def watch(run: Run, checkpoint: Checkpoint, episodes: int, seed: int, sink: str | Path) -> list[Episode]:
    """Show a checkpoint's policy in a window (`sink` is "window"), or as a .gif or .mp4 file."""
    from operant.engines.jax.video import record_video

    return record_video(run, checkpoint, episodes, seed, sink)
