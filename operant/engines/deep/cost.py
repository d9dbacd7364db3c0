"""What a session would cost: derived arithmetic in words, and a second of real training as the measure."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from operant.engines.deep.dqn import Dqn
from operant.engines.deep.learners import build_learner, prepare_torch
from operant.engines.deep.ppo import Ppo
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

PROBE_SECONDS = 1.0
BYTES_PER_ROW = 400
BYTES_PER_EPISODE = 260


@dataclass(frozen=True)
class Estimate:
    """The cost of one session, on this machine with one thread."""

    parameters: int
    lines: list[str]
    updates: int
    frames_per_second: float
    seconds_per_session: float
    disk_bytes: int


def measure(spec: Spec) -> Estimate:
    """Build the learner in memory, let it train for about a second, and scale up."""
    learner = build_learner(spec, Seeds(spec.meta.seed), prepare_torch(spec, 1))
    assert isinstance(learner, Ppo | Dqn)
    rate = _frames_per_second(learner)
    seconds = spec.env.max_frame / rate
    lines, updates = _ppo_arithmetic(spec, learner) if isinstance(learner, Ppo) else _dqn_arithmetic(spec, learner)
    return Estimate(
        parameters=sum(p.numel() for p in learner.net.parameters()),
        lines=lines,
        updates=updates,
        frames_per_second=rate,
        seconds_per_session=seconds,
        disk_bytes=_disk(spec, learner),
    )


def _frames_per_second(learner: Ppo | Dqn) -> float:
    """The rate once learning has begun: warm-up frames without gradient steps are not counted."""
    if isinstance(learner, Dqn):
        while learner.tracker.frames < learner.algorithm.training_start:
            learner.iterate()
    learner.iterate()
    first, start = learner.tracker.frames, time.perf_counter()
    while time.perf_counter() - start < PROBE_SECONDS:
        learner.iterate()
    return (learner.tracker.frames - first) / (time.perf_counter() - start)


def _ppo_arithmetic(spec: Spec, learner: Ppo) -> tuple[list[str], int]:
    settings = learner.algorithm
    batch = spec.env.num_envs * settings.time_horizon
    rollouts = -(-spec.env.max_frame // batch)
    minibatches = batch // settings.minibatch_size
    steps = rollouts * settings.training_epoch * minibatches
    lines = [
        f"{rollouts:,} updates x {batch:,} samples ({spec.env.num_envs} envs x {settings.time_horizon} steps)"
        f" = {rollouts * batch:,} frames",
        f"each update: {settings.training_epoch} epochs x {minibatches} minibatches of {settings.minibatch_size}"
        f" = {settings.training_epoch * minibatches} gradient steps, {steps:,} in all",
    ]
    return lines, steps


def _dqn_arithmetic(spec: Spec, learner: Dqn) -> tuple[list[str], int]:
    settings, memory = learner.algorithm, learner.memory
    rounds = max(0, spec.env.max_frame - settings.training_start) // settings.training_frequency
    steps = rounds * settings.training_iter
    ratio = settings.training_iter * memory.batch_size / settings.training_frequency
    lines = [
        f"{steps:,} gradient steps of {memory.batch_size} from frame {settings.training_start:,} on,"
        f" {settings.training_iter} every {settings.training_frequency} frames",
        f"each transition is learnt from about {ratio:g} times; replay of {memory.max_size:,} transitions",
    ]
    return lines, steps


def _disk(spec: Spec, learner: Ppo | Dqn) -> int:
    """Bytes of one finished session: kept checkpoints, metric rows and episode records."""
    with tempfile.TemporaryDirectory() as folder:
        learner.snapshot.write(Path(folder))
        one = sum(file.stat().st_size for file in Path(folder).iterdir())
    if isinstance(learner, Dqn):
        held = sum(array.nbytes for array in learner.replay.state().values())
        one += int(held * (min(spec.env.max_frame, learner.memory.max_size) / max(learner.replay.filled, 1) - 1))
    meta, frames = spec.meta, spec.env.max_frame
    played = learner.tracker.episodes * frames / max(learner.tracker.frames, 1)
    episodes = played + meta.eval_episodes * frames / meta.eval_frequency + meta.final_episodes
    rows = frames / meta.log_frequency
    return int(one * (meta.keep_checkpoints + 1) + rows * BYTES_PER_ROW + episodes * BYTES_PER_EPISODE)
