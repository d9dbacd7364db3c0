"""What a session would cost: update counts as text, and a second of real training as the measure."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from operant.engines.torch.learners import build_learner, prepare_torch
from operant.engines.torch.loop import Learner
from operant.envs.vector.backend import choose_backend
from operant.run.expense import Estimate
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

PROBE_SECONDS = 1.0
BYTES_PER_ROW = 400
BYTES_PER_EPISODE = 260


def measure(spec: Spec) -> Estimate:
    """Build the learner in memory, let it train for about a second, and scale up."""
    learner = build_learner(spec, Seeds(spec.meta.seed), prepare_torch(spec, 1))
    rate = _frames_per_second(learner)
    counts = learner.update_counts()
    return Estimate(
        parameters=sum(p.numel() for p in learner.net.parameters() if p.requires_grad),
        lines=[*counts.lines, choose_backend(spec.env, spec.env.num_envs).describe(spec.env.num_envs)],
        updates=counts.updates,
        frames_per_second=rate,
        seconds_per_session=spec.env.max_frame / rate,
        disk_bytes=_disk(spec, learner),
    )


def _frames_per_second(learner: Learner) -> float:
    """The rate once learning has begun: warm-up frames without gradient steps are not counted."""
    warm_up = learner.update_counts().warm_up
    while learner.tracker.frames < warm_up:
        learner.iterate()
    learner.iterate()
    first, start = learner.tracker.frames, time.perf_counter()
    while time.perf_counter() - start < PROBE_SECONDS:
        learner.iterate()
    return (learner.tracker.frames - first) / (time.perf_counter() - start)


def _disk(spec: Spec, learner: Learner) -> int:
    """Bytes of one finished session: kept checkpoints, metric rows and episode records."""
    with tempfile.TemporaryDirectory() as folder:
        learner.snapshot.write(Path(folder))
        one = sum(file.stat().st_size for file in Path(folder).iterdir()) + learner.update_counts().growth
    meta, frames = spec.meta, spec.env.max_frame
    played = learner.tracker.episodes * frames / max(learner.tracker.frames, 1)
    episodes = played + meta.eval_episodes * frames / meta.eval_frequency + meta.final_episodes
    rows = frames / meta.log_frequency
    return int(one * (meta.keep_checkpoints + 1) + rows * BYTES_PER_ROW + episodes * BYTES_PER_EPISODE)
