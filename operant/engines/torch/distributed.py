"""One session in several processes: each plays its share of the environments and learns from its share of the samples.

All processes hold the same learner in the same state. A step of an environment is played by one
of them and told to all, random numbers are drawn alike by all, and gradients are averaged, so that
N processes compute what one would, up to the order in which a gradient is summed. Process 0, the
leader, is the session: it alone logs, evaluates and saves; the others follow until it says that
there is no further round.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import Store, TCPStore  # pyright: ignore[reportPrivateImportUsage]

from operant.envs.cores import CORES_VARIABLE, cores_here
from operant.envs.vector.autoreset import make_vector_env
from operant.envs.vector.base import Outcome, VectorEnv
from operant.envs.vector.subproc import Layout, Shared
from operant.errors import RunError, UsageError
from operant.run.followers import Death, Followers
from operant.run.processes.distributed_config import DistributedConfig
from operant.run.processes.leadership import Leadership, checkpoint_files
from operant.run.run import Run
from operant.spec.schema import Spec
from operant.spec.settings.sections import EnvSpec

HOST = "127.0.0.1"
PATIENCE = timedelta(days=30)  # the leader may evaluate for as long as it takes


class Dismissed(Exception):
    """The leader has finished, and so has whoever follows it."""


class Ranks:
    """The processes of this session, of which this is number `rank` of `size`.

    Alone, every method leaves things as they are.
    """

    def __init__(self) -> None:
        joined = dist.is_initialized()
        self.rank = dist.get_rank() if joined else 0
        self.size = dist.get_world_size() if joined else 1

    def rows(self, count: int) -> slice:
        """This process's share of `count` rows, which is a multiple of `size`."""
        each = count // self.size
        return slice(self.rank * each, (self.rank + 1) * each)

    def begin(self) -> None:
        """Go into the next round together; `Dismissed` when the leader goes into none."""
        if self.size > 1 and not self._broadcast(True):
            raise Dismissed

    def dismiss(self) -> None:
        """Tell the others that there is no further round."""
        self._broadcast(False)

    def _broadcast(self, word: bool) -> bool:
        said = torch.tensor([word])
        dist.broadcast(said, src=0)
        return bool(said)

    def average(self, tensor: Tensor) -> Tensor:
        """The mean of this tensor over the processes, in place."""
        if self.size > 1:
            dist.all_reduce(tensor)
            tensor /= self.size
        return tensor

    def gather(self, part: Tensor) -> Tensor:
        """The parts of all processes, one after another."""
        if self.size == 1:
            return part
        parts = [torch.empty_like(part) for _ in range(self.size)]
        dist.all_gather(parts, part.contiguous())
        return torch.cat(parts)

    def vector_env(self, spec: EnvSpec, num: int) -> VectorEnv | None:
        """The environments, shared out among the processes; None where there is but one."""
        return None if self.size == 1 else RankVectorEnv(self, spec, num)


class RankVectorEnv(VectorEnv):
    """Environments of which each process steps its share; all processes see all of them."""

    def __init__(self, ranks: Ranks, spec: EnvSpec, num: int) -> None:
        self.num = num
        self._ranks = ranks
        self._mine = ranks.rows(num)
        self._own = make_vector_env(spec, num // ranks.size)
        self.action_space = self._own.action_space
        self.obs_shape, self.obs_dtype = self._own.obs_shape, self._own.obs_dtype
        self.prefetches_resets = self._own.prefetches_resets
        layout = Layout.of(self._own, num // ranks.size)
        self._parts = [torch.zeros(layout.size(), dtype=torch.uint8) for _ in range(ranks.size)]
        self._shared = [Shared.within(layout, part.numpy().data) for part in self._parts]

    def prefetch_reset(self, index: int, seed: int) -> None:
        owner, place = divmod(index, self.num // self._ranks.size)
        if owner == self._ranks.rank:
            self._own.prefetch_reset(place, seed)

    def reset(self, index: int, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
        owner, place = divmod(index, self.num // self._ranks.size)
        shared = self._shared[owner]
        if owner == self._ranks.rank:
            shared.obs[place], mask = self._own.reset(place, seed)
            shared.has_mask[place] = mask is not None
            if mask is not None:
                shared.mask[place] = mask
        dist.broadcast(self._parts[owner], src=owner)
        return shared.obs[place].copy(), shared.mask[place].copy() if shared.has_mask[place] else None

    def step(self, actions: list[Any], playing: np.ndarray | None = None) -> Outcome:
        mine = self._mine
        self._shared[self._ranks.rank].take(self._own.step(actions[mine], None if playing is None else playing[mine]))
        dist.all_gather(self._parts, self._parts[self._ranks.rank].clone())
        return Shared.outcome(self._shared)

    def close(self) -> None:
        self._own.close()


@contextmanager
def led(run: Run, spec: Spec, checkpoint: Path | None, leadership: Leadership) -> Iterator[None]:
    """Within this context the session has as many processes as its spec asks for; this one leads.

    It starts the others, unless they were started from outside. One that dies ends the session with an error that
    names it.
    """
    if spec.meta.processes == 1 and leadership.world is None:
        yield
    elif leadership.world is None:
        with _led_here(run, spec, checkpoint):
            yield
    else:
        with _led_elsewhere(run, spec, checkpoint, leadership):
            yield


@contextmanager
def _led_here(run: Run, spec: Spec, checkpoint: Path | None) -> Iterator[None]:
    """The other processes are started on this machine, and end with the context."""
    store = TCPStore(HOST, 0, spec.meta.processes, is_master=True, wait_for_workers=False, timeout=PATIENCE)
    # Each process steps its environments on its own share of the cores.
    os.environ[CORES_VARIABLE] = str(max(1, cores_here() // spec.meta.processes))
    code = "from operant.engines.torch.follower import follow_leader; follow_leader()"
    given = [
        [str(run.path), str(store.port), str(rank), str(checkpoint or "")] for rank in range(1, spec.meta.processes)
    ]
    with Followers(code, given) as followers:
        try:
            join(spec, store, 0, rank_here=0, is_local=True)
            yield
            Ranks().dismiss()
        except RuntimeError as broken:
            death = followers.death()
            if death is None:
                raise
            raise _death_error(death, spec) from broken
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()


@contextmanager
def _led_elsewhere(run: Run, spec: Spec, checkpoint: Path | None, leadership: Leadership) -> Iterator[None]:
    """The other processes were started from outside; they have come, and are told what to train."""
    world = leadership.world
    assert world is not None, "there are other processes"
    check_size(spec, world)
    bound = HOST if world.is_local else "0.0.0.0"
    store = TCPStore(bound, 0, world.num_processes, is_master=True, wait_for_workers=False, timeout=PATIENCE)
    leadership.tell("train", checkpoint_files(checkpoint), spec=run.spec, seed=run.seed, port=store.port)
    try:
        join(spec, store, 0, rank_here=0, is_local=world.is_local)
        yield
        Ranks().dismiss()
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def check_size(spec: Spec, world: DistributedConfig) -> None:
    """`UsageError` where another number of processes was started than shares the session."""
    if spec.meta.processes != world.num_processes:
        raise UsageError(
            f"meta.processes: {spec.meta.processes} are asked for, and {world.num_processes} were started",
            remedy=f"start {spec.meta.processes} processes, or -s meta.processes={world.num_processes}",
        )


def join(spec: Spec, store: Store, rank: int, *, rank_here: int, is_local: bool) -> None:
    """Become one of the session's processes; environments speak by gloo, gradients on GPUs by NCCL.

    `rank_here` counts the processes of this machine, which share its GPUs; `is_local` says that there is no other.
    """
    size = spec.meta.processes
    if is_local:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    gpus = torch.cuda.device_count() if spec.meta.device != "cpu" else 0
    # On one machine, fewer GPUs than processes are not shared; elsewhere a process may be given one of its own to see.
    on_gpus = gpus >= size if is_local else gpus > 0
    if on_gpus:
        torch.cuda.set_device(rank_here % gpus)
    backend = "cpu:gloo,cuda:nccl" if on_gpus else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=PATIENCE)


def _death_error(death: Death, spec: Spec) -> RunError:
    mine = slice(*(spec.env.num_envs // spec.meta.processes * k for k in (death.rank, death.rank + 1)))
    return RunError(
        f"{spec.env.name}: process {death.rank} of 0 to {spec.meta.processes - 1}, with environments"
        f" {mine.start} to {mine.stop - 1}, died: {death.cause}",
        remedy="`operant resume` goes on from the last checkpoint",
    )
