"""Training in several processes that something else started: the spec they train, and the life of all but the first."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from operant.engines import load
from operant.errors import EXIT_DONE, UsageError
from operant.launch.budget import library_environment
from operant.run.processes.distributed_config import DistributedConfig
from operant.run.processes.follower import Follower, follow
from operant.run.processes.leader import Leader
from operant.run.run import Run
from operant.spec.schema import Spec
from operant.spec.stored import stored

SETTINGS = {"torch": "meta.processes", "jax": "meta.devices"}


def spread(spec: Spec, processes: int) -> list[str]:
    """The overrides by which a spec is trained by so many processes: one device each, unless it asks for more."""
    path = _setting(spec)
    return [f"{path}={processes}"] if _value(spec, path) == 1 else []


def check_spread(spec: Spec, sessions: int, processes: int) -> None:
    """`UsageError` where sessions cannot be trained by so many processes."""
    path = _setting(spec)
    asked = _value(spec, path)
    if asked % processes or (path == "meta.processes" and asked != processes):
        raise UsageError(
            f"{path}: the spec asks for {asked}, and {processes} processes were started",
            remedy=f"-s {path}={processes}    (of a run, that makes a fork), or start another number of processes",
        )
    if path == "meta.processes" and sessions > 1:
        raise UsageError(
            f"meta.max_session: processes that were started together train one session of the torch engine, not"
            f" {sessions}",
            remedy="--sessions 1; `operant launch --on slurm` starts processes for each",
        )


def check_runs(runs: Sequence[Run], world: DistributedConfig) -> None:
    """`UsageError` where these sessions cannot be trained by the processes that were started."""
    check_spread(stored(runs[0].spec), len(runs), world.num_processes)


def processes_per_node(spec: Spec, nodes: int) -> int:
    """Processes of a session on each of its nodes: one, which has all devices of the jax engine; or those of torch.

    `UsageError` where they cannot have equal shares.
    """
    if nodes == 1:
        return 1
    path = _setting(spec)
    asked = _value(spec, path)
    if asked % nodes:
        raise UsageError(
            f"meta.launch.nodes: {nodes} nodes cannot have equal shares of {path} = {asked}",
            remedy=f"-s {path}={-(-asked // nodes) * nodes}, or -s meta.launch.nodes=1",
        )
    return asked // nodes if path == "meta.processes" else 1


def dismiss(world: DistributedConfig, run: Run) -> None:
    """Send the other processes home, as there is nothing to train."""
    Leader(world, run, stored(run.spec).engine_name, lambda cause: None).dismiss(EXIT_DONE)


def follow_leader(world: DistributedConfig, spec: dict[str, Any] | None, report: Callable[[str], object]) -> int:
    """Be one of the processes that process 0 leads, until it has finished; returns the exit code that it gives.

    `spec` is what this process was given, which must be that of process 0; None if it was given none.
    """

    def member(follower: Follower) -> Callable[[dict[str, Any]], object]:
        os.environ.update(library_environment(follower.threads))
        report(f"process {world.process_id} of 0 to {world.num_processes - 1} follows process 0 at {world.address}")
        return load(follower.engine).follower(world, follower.local_id)

    return follow(world, spec, member)


def _setting(spec: Spec) -> str:
    path = SETTINGS.get(spec.engine_name)
    if path is None:
        raise UsageError(
            f"the {spec.engine_name} engine cannot join processes that were started from outside",
            remedy="operant train SPEC -s meta.processes=N    (starts them itself, on this machine)",
        )
    return path


def _value(spec: Spec, path: str) -> int:
    return spec.meta.processes if path == "meta.processes" else spec.meta.devices
