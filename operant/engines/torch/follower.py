"""A process that follows the leader of a session: it computes the same updates and writes nothing."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import torch
import torch.distributed as dist
from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]

from operant.engines.torch.distributed import HOST, PATIENCE, Dismissed, join
from operant.engines.torch.learners import build_learner, prepare_torch
from operant.run.followers import follow
from operant.run.processes.connection import Message
from operant.run.processes.distributed_config import DistributedConfig
from operant.run.run import Run
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.stored import stored


def follow_leader() -> None:
    """The life of a follower: as the leader, but for everything that is written."""
    path, port, rank, checkpoint = sys.argv[1:]
    follow(lambda: _follow(Run.open(Path(path)), int(port), int(rank), checkpoint), Dismissed)


def _follow(run: Run, port: int, rank: int, checkpoint: str) -> None:
    spec = stored(run.spec)
    device = prepare_torch(spec, run.threads)
    store = TCPStore(HOST, port, spec.meta.processes, is_master=False, timeout=PATIENCE)
    join(spec, store, rank, rank_here=rank, is_local=True)
    _learn(spec, run.seed, device, Path(checkpoint) if checkpoint else None)


def obey(world: DistributedConfig, local_id: int, order: Message) -> None:
    """Carry out an order of a leader elsewhere: share a session to its end."""
    if order["order"] != "train":
        return
    spec = stored(order["spec"])
    device = prepare_torch(spec, int(os.environ["OMP_NUM_THREADS"]))
    store = TCPStore(world.host, order["port"], world.num_processes, is_master=False, timeout=PATIENCE)
    join(spec, store, world.process_id, rank_here=local_id, is_local=world.is_local)
    with suppress(Dismissed):
        _learn(spec, order["seed"], device, Path(order["folder"]) if "folder" in order else None)
    dist.destroy_process_group()


def _learn(spec: Spec, seed: int, device: torch.device, checkpoint: Path | None) -> NoReturn:
    """Compute every update of the leader, until it has no further one: `Dismissed`."""
    learner = build_learner(spec, Seeds(seed), device)
    if checkpoint is not None:
        learner.snapshot.read(checkpoint)
    while True:
        learner.iterate()
