"""What a job is: the processes of one trial, the resources each asks for, and where it was sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from operant.errors import OperantError
from operant.registry import Origin

LAUNCH_FOLDER = "launch"
JobState = Literal["queued", "running", "done", "stopped", "failed", "gone", "unknown"]


class LaunchError(OperantError):
    """A job could not be submitted, found or stopped."""

    kind = "launch"


@dataclass(frozen=True)
class JobResources:
    """What each task of a job asks for. `hours` is the longest time it may take."""

    cpus: int
    gpus: float
    gpu: str | None
    memory_gb: float | None
    hours: float
    max_price: float | None


@dataclass(frozen=True)
class JobRequest:
    """A job to plan: `tasks` are the argument lists that it runs, side by side and independent of each other.

    Each task can be started again at any time: it continues its run where its newest checkpoint left off.
    With several `nodes` a task is started as `processes_per_node` processes on each, which find each other by the
    variables of `operant.run.processes.distributed_config`. `settings` are those of the place that it is sent to
    (`meta.launch.slurm` and so on); `spec` and `sync` are the spec's name and the store of its runs; `parts` are the
    modules that it names and that are not Operant's own.
    """

    name: str
    experiment: Path
    tasks: Sequence[Sequence[str]]
    resources: JobResources
    setup: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    extras: Sequence[str] = ()
    spec: str = ""
    sync: str | None = None
    parts: Sequence[Origin] = ()
    nodes: int = 1
    processes_per_node: int = 1

    @property
    def num_processes(self) -> int:
        """Processes of one task."""
        return self.nodes * self.processes_per_node

    @property
    def size(self) -> str:
        """How many processes and nodes a task has, before what each process asks for; nothing where it is one."""
        return f"{self.num_processes} processes on {self.nodes} nodes, of " if self.nodes > 1 else ""

    @property
    def folder(self) -> Path:
        """Where the job's files are written."""
        return self.experiment / LAUNCH_FOLDER


@dataclass(frozen=True)
class JobPlan:
    """Everything that submitting would do: the files, the uploads, the command, in the order in which they happen.

    `store` is the URL of the run for a place that cannot read this machine's files: the run goes there first, and the
    job keeps it there.
    """

    place: str
    request: JobRequest
    files: Mapping[Path, str | bytes]
    command: Sequence[str]
    lines: Sequence[str]
    store: str | None = None

    def write(self) -> list[Path]:
        """Write the job's files."""
        for path, content in self.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return list(self.files)


@dataclass(frozen=True)
class Job:
    """A job that was submitted. `ident` is what its place calls it, `store` where its run is if it is not here."""

    id: str
    place: str
    ident: str
    name: str
    experiment: str
    submitted: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    store: str | None = None

    @property
    def folder(self) -> Path:
        """Where its files and logs are, on the machine that submitted it."""
        return Path(self.experiment) / LAUNCH_FOLDER


def refuse_nodes(request: JobRequest) -> None:
    """`LaunchError` for a session on several nodes, at a place that cannot start one."""
    if request.nodes > 1:
        raise LaunchError(
            f"a session on {request.nodes} nodes can be sent to slurm and to ray only",
            place="meta.launch.nodes",
            remedy="--on slurm; or start its processes yourself: operant train --help    (--coordinator-address)",
        )


def require_sync(request: JobRequest, why: str, schemes: Sequence[str]) -> str:
    """The URL of the run in its store, which this job cannot do without; it has one of these schemes."""
    sync = request.sync
    if sync is None or urlsplit(sync).scheme not in schemes:
        named = "names no store for the run" if sync is None else f"stores the run at {sync}, out of its reach"
        raise LaunchError(
            f"{why}, and the spec {named}",
            place="meta.sync",
            remedy="--set meta.sync=s3://BUCKET/FOLDER    (checkpoints and metrics go there while it trains)",
        )
    address, question, query = sync.partition("?")
    return f"{address.rstrip('/')}/{request.spec}/{request.experiment.name}{question}{query}"


class Place(Protocol):
    """Somewhere that jobs can be sent to. A place that is not there raises `LaunchError` with what to do."""

    def plan(self, request: JobRequest) -> JobPlan:
        """What submitting would do; writes nothing and asks nobody."""
        ...

    def submit(self, plan: JobPlan) -> str:
        """Submit a plan whose files are written; returns what the place calls the job."""
        ...

    def state(self, job: Job) -> JobState:
        """Whether it waits or runs; `gone` once the place knows it no longer, when its run tells how it ended."""
        ...

    def stop(self, job: Job) -> None:
        """Ask it to save and end."""
        ...

    def logs(self, job: Job) -> Iterator[Path]:
        """The files that its output goes to, as far as they can be read from here."""
        ...
