"""One session in several processes: all of them generate and train; the leader scores and records.

Process 0 is the session. It starts the others, tells them every call of its learner and its generator, and they make
the same call on their slices of the weights and their share of the work, until it says that there is no more to do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import Store, TCPStore  # pyright: ignore[reportPrivateImportUsage]

from operant.engines.language.distributed.ranks import LeaderDone, Ranks
from operant.engines.language.policy.build import prepare_torch
from operant.errors import RunError
from operant.run.followers import Death, Followers, follow
from operant.run.run import Run
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.stored import stored

HOST = "127.0.0.1"
PATIENCE = timedelta(days=30)  # the leader may generate for as long as it takes


@contextmanager
def process_group(run: Run, spec: Spec, follower: str) -> Iterator[None]:
    """Within this context the session has as many processes as its spec asks for; this one is rank 0, the leader.

    `follower` is the code of the other ranks, which ends in `follow_leader`. A rank that dies ends the session with an
    error that names it.
    """
    if spec.meta.processes == 1:
        yield
        return
    store = TCPStore(HOST, 0, spec.meta.processes, is_master=True, wait_for_workers=False, timeout=PATIENCE)
    given = [[str(run.path), str(store.port), str(rank)] for rank in range(1, spec.meta.processes)]
    with Followers(follower, given) as followers:
        try:
            _join(spec, store, 0)
            yield
            Ranks().broadcast_call(None)
        except RuntimeError as broken:
            death = followers.death()
            if death is None:
                raise
            raise _death_error(death, spec.meta.processes) from broken
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()


def _join(spec: Spec, store: Store, rank: int) -> None:
    """Become one of the session's processes; words go by gloo, weights on GPUs by NCCL."""
    size = spec.meta.processes
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    on_gpus = spec.meta.device != "cpu" and torch.cuda.is_available()
    if on_gpus:
        torch.cuda.set_device(rank)
    backend = "cpu:gloo,cuda:nccl" if on_gpus else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=PATIENCE)


def _death_error(death: Death, processes: int) -> RunError:
    return RunError(
        f"process {death.rank} of 0 to {processes - 1}, with its share of the weights, died: {death.cause}",
        remedy="`operant resume` goes on from the last checkpoint",
    )


def follow_leader(build_members: Callable[[Spec, Seeds], Mapping[str, Any]]) -> None:
    """Run a rank other than 0: make every call that the leader makes, on the member of the same class name."""
    path, port, rank = sys.argv[1:]
    follow(lambda: _follow(Run.open(Path(path)), int(port), int(rank), build_members), LeaderDone)


def _follow(run: Run, port: int, rank: int, build_members: Callable[[Spec, Seeds], Mapping[str, Any]]) -> None:
    spec = stored(run.spec)
    prepare_torch(spec, run.threads)
    _join(spec, TCPStore(HOST, port, spec.meta.processes, is_master=False, timeout=PATIENCE), rank)
    members, ranks = build_members(spec, Seeds(run.seed)), Ranks()
    while True:
        who, what, arguments = ranks.receive_call()
        getattr(members[who], what)(*arguments)
