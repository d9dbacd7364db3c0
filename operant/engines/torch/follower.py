"""A process that follows the leader of a session: it computes the same updates and writes nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]

from operant.engines.torch.distributed import HOST, PATIENCE, Dismissed, join
from operant.engines.torch.learners import build_learner, prepare_torch
from operant.run.followers import follow
from operant.run.run import Run
from operant.run.seeding import Seeds
from operant.spec.stored import stored


def follow_leader() -> None:
    """The life of a follower: as the leader, but for everything that is written."""
    path, port, rank, checkpoint = sys.argv[1:]
    follow(lambda: _follow(Run.open(Path(path)), int(port), int(rank), checkpoint), Dismissed)


def _follow(run: Run, port: int, rank: int, checkpoint: str) -> None:
    spec = stored(run.spec)
    device = prepare_torch(spec, run.threads)
    join(spec, TCPStore(HOST, port, spec.meta.processes, is_master=False, timeout=PATIENCE), rank)
    learner = build_learner(spec, Seeds(run.seed), device)
    if checkpoint:
        learner.snapshot.read(Path(checkpoint))
    while True:
        learner.iterate()
