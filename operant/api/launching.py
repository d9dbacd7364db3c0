"""Jobs from Python: `launch` sends a spec somewhere, `jobs` says how those that were sent fare."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.api.runs import Session
from operant.api.specs import AnySpec, loaded_spec
from operant.api.store import push
from operant.api.training import create_runs
from operant.engines import NEEDS, trains_together
from operant.errors import OperantError
from operant.launch.jobs.job import Job, JobPlan, JobRequest, JobResources, JobState
from operant.launch.jobs.places import place
from operant.launch.jobs.record import add_job, find_job, jobs
from operant.launch.trial import session_argv
from operant.run.run import Run, find_sessions
from operant.spec.load import Loaded
from operant.spec.schema import Spec

LONGEST_NAME = 60


@dataclass(frozen=True)
class JobStatus:
    """A job, its state, and how many frames its sessions have trained of how many."""

    job: Job
    state: JobState
    frames: int
    max_frames: int


def launch(
    spec: AnySpec,
    name: str | None = None,
    /,
    *,
    on: str | None = None,
    job_name: str | None = None,
    root: str | Path = "runs",
    out: str | Path | None = None,
    **settings: Any,
) -> Job:
    """Send the sessions of a spec to where `meta.launch` or `on` says, and return the job; the job goes on by itself.

    `settings` are those of `train`. The run directory is made here first, so that `operant.open` reads it at once.
    """
    chosen = {"meta.launch.on": on} if on is not None else {}
    plan = plan_job(loaded_spec(spec, name, settings | chosen), job_name=job_name, root=root, out=out)
    return submit(plan, root)


def plan_job(loaded: Loaded, *, job_name: str | None, root: str | Path, out: str | Path | None) -> JobPlan:
    """Make the run directory and plan the job that trains it; nothing is submitted or uploaded.

    The plan of a throw-away request is made first: a place that refuses leaves no run directory behind.
    """
    spec = loaded.spec
    where = place(spec.meta.launch.on)
    where.plan(_request(spec, job_name, Path(root) / spec.name / "planned", [["operant"]]))
    runs = create_runs(loaded, root=root, out=out)
    return where.plan(_request(spec, job_name, runs[0].path.parent.parent, _tasks(spec, runs)))


def submit(plan: JobPlan, root: str | Path = "runs") -> Job:
    """Write the files of a plan, submit it, and note it in the job log."""
    plan.write()
    upload(plan)
    request = plan.request
    ident = place(plan.place).submit(plan)
    return add_job(Path(root), plan.place, ident, request.name, request.experiment, request.settings)


def upload(plan: JobPlan) -> None:
    """Send the run directory to its store, where the place that trains it cannot read this machine's files."""
    if plan.uploads and plan.request.sync is not None:
        push(plan.request.experiment, plan.request.sync)


def job_status(job: Job) -> JobStatus:
    """How a job fares; once its place knows it no longer, its sessions tell how it ended."""
    try:
        runs = find_sessions(Path(job.experiment))
    except OperantError:
        runs = []
    state = place(job.place).state(job)
    if state == "gone" and runs:
        state = _ending(runs)
    return JobStatus(job, state, sum(Session(run.path).frames for run in runs), sum(run.max_frame for run in runs))


def list_jobs(root: str | Path = "runs") -> list[JobStatus]:
    """Every job that was sent from here, oldest first."""
    return [job_status(job) for job in jobs(Path(root))]


def stop_job(wanted: str, root: str | Path = "runs") -> Job:
    """Ask a job, by its id or name, to save and end."""
    job = find_job(Path(root), wanted)
    place(job.place).stop(job)
    return job


def job_logs(wanted: str, root: str | Path = "runs") -> list[Path]:
    """The files that a job's output goes to, as far as they can be read from here."""
    job = find_job(Path(root), wanted)
    return list(place(job.place).logs(job))


def _request(spec: Spec, job_name: str | None, experiment: Path, tasks: Sequence[Sequence[str]]) -> JobRequest:
    asked = spec.meta.launch
    resources = JobResources(asked.cpus, asked.gpus, asked.gpu, asked.memory_gb, asked.hours, asked.max_price)
    return JobRequest(
        name=job_name or _job_name(spec.name),
        experiment=experiment,
        tasks=tasks,
        resources=resources,
        setup=asked.setup,
        settings={} if asked.on == "local" else getattr(asked, asked.on).model_dump(mode="json"),
        extras=(NEEDS[spec.engine_name][1], "cloud"),
        spec=spec.name,
        sync=spec.meta.sync,
    )


def _tasks(spec: Spec, runs: Sequence[Run]) -> list[list[str]]:
    """One process for each session, or one for all where the engine trains them in one program."""
    if trains_together(spec):
        return [session_argv(runs[0], None, runs[1:])]
    return [session_argv(run, None) for run in runs]


def _ending(runs: Sequence[Run]) -> JobState:
    states = {run.state for run in runs}
    if states == {"done"}:
        return "done"
    return "failed" if "failed" in states else "stopped"


def _job_name(name: str) -> str:
    """A name that every place takes: small letters, digits and dashes, beginning with a letter."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:LONGEST_NAME].strip("-")
    return plain if plain[:1].isalpha() else f"run-{plain}"
