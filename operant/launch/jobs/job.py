"""What a job is: the processes of one trial, the resources each asks for, and where it was sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from operant.errors import OperantError

LAUNCH_FOLDER = "launch"
JobState = Literal["queued", "running", "done", "stopped", "failed", "gone"]


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
    `settings` are those of the place that it is sent to (`meta.launch.slurm` and so on); `spec` and `sync` are the
    spec's name and the store of its runs.
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

    @property
    def folder(self) -> Path:
        """Where the job's files are written."""
        return self.experiment / LAUNCH_FOLDER


@dataclass(frozen=True)
class JobPlan:
    """Everything that submitting would do: the files, the upload, the command, in the order in which they happen."""

    place: str
    request: JobRequest
    files: Mapping[Path, str]
    command: Sequence[str]
    lines: Sequence[str]
    uploads: Sequence[str] = ()

    def write(self) -> list[Path]:
        """Write the job's files."""
        for path, text in self.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return list(self.files)


@dataclass(frozen=True)
class Job:
    """A job that was submitted. `ident` is what its place calls it."""

    id: str
    place: str
    ident: str
    name: str
    experiment: str
    submitted: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def require_sync(request: JobRequest, why: str) -> str:
    """The URL that the run is synced to, which this job cannot do without."""
    if request.sync is None:
        raise LaunchError(
            f"{why}, and the spec names no store for the run",
            place="meta.sync",
            remedy="--set meta.sync=s3://BUCKET/FOLDER    (checkpoints and metrics go there while it trains)",
        )
    return f"{request.sync.rstrip('/')}/{request.spec}/{request.experiment.name}"


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
