"""Jobs from Python: `launch` sends a spec somewhere, `jobs` says how those that were sent fare."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.api.processes import processes_per_node
from operant.api.runs import Session
from operant.api.search_jobs import begun_elsewhere, worker_tasks
from operant.api.specs import AnySpec, loaded_spec
from operant.api.store import list_stored, push
from operant.api.training import create_runs
from operant.engines import NEEDS, trains_together
from operant.errors import OperantError, UsageError
from operant.hpo.study import open_study
from operant.launch.jobs.job import Job, JobPlan, JobRequest, JobResources, JobState, LaunchError
from operant.launch.jobs.places import place
from operant.launch.jobs.record import add_job, find_job, jobs
from operant.launch.trial import session_argv
from operant.report.search_table import read_search, search_rows
from operant.run.run import Run, find_sessions
from operant.spec.load import Loaded
from operant.spec.schema import Spec

LONGEST_NAME = 60
JOB_NAME = rf"[a-z][a-z0-9-]{{0,{LONGEST_NAME - 1}}}"


@dataclass(frozen=True)
class JobStatus:
    """A job, its state, and how many frames its sessions have trained of how many; `note` says why it is unknown.

    How many frames a search will train nobody knows.
    """

    job: Job
    state: JobState
    frames: int
    max_frames: int | None
    note: str = ""

    @property
    def progress(self) -> str:
        """The frames in words."""
        return (
            f"{self.frames:,} frames" if self.max_frames is None else f"{self.frames:,} of {self.max_frames:,} frames"
        )


def launch(
    spec: AnySpec,
    name: str | None = None,
    /,
    *,
    on: str | None = None,
    job_name: str | None = None,
    search_workers: int | None = None,
    root: str | Path = "runs",
    out: str | Path | None = None,
    **settings: Any,
) -> Job:
    """Send the sessions of a spec to where `meta.launch` or `on` says, and return the job; the job goes on by itself.

    With `search_workers` its search is sent instead, as so many workers. `settings` are those of `train`. The run
    directory is made here first, so that `operant.open` reads it at once.
    """
    chosen = {"meta.launch.on": on} if on is not None else {}
    loaded = loaded_spec(spec, name, settings | chosen)
    return submit(plan_job(loaded, job_name=job_name, search_workers=search_workers, root=root, out=out), root)


def plan_job(
    loaded: Loaded, *, job_name: str | None, search_workers: int | None, root: str | Path, out: str | Path | None
) -> JobPlan:
    """Make the run directory and plan the job that trains it, or searches; nothing is submitted or uploaded.

    The plan of a throw-away request is made first: a place that refuses leaves no run directory behind.
    """
    spec = loaded.spec
    if search_workers is not None and spec.meta.launch.nodes > 1:
        raise UsageError("meta.launch.nodes: a trial of a search has one node", remedy="-s meta.launch.nodes=1")
    where = place(spec.meta.launch.on)
    where.plan(_request(spec, job_name, Path(root) / spec.name / "planned", [["operant"]]))
    if search_workers is not None:
        study = begun_elsewhere(loaded, search_workers, root=root, out=out)
        return where.plan(_request(spec, job_name, study.path, worker_tasks(study)))
    runs = create_runs(loaded, root=root, out=out)
    return where.plan(_request(spec, job_name, runs[0].path.parent.parent, _tasks(spec, runs), runs))


def submit(plan: JobPlan, root: str | Path = "runs") -> Job:
    """Write the files of a plan, submit it, and note it in the job log."""
    plan.write()
    upload(plan)
    request = plan.request
    ident = place(plan.place).submit(plan)
    return add_job(Path(root), plan.place, ident, request.name, request.experiment, request.settings, plan.store)


def upload(plan: JobPlan) -> None:
    """Send the run directory to its store, where the place that trains it cannot read this machine's files.

    A run that is there already stays as it is: jobs before this one have trained it there.
    """
    if plan.store is not None and plan.request.sync is not None and not list_stored(plan.store):
        push(plan.request.experiment, plan.request.sync)


def job_status(job: Job) -> JobStatus:
    """How a job fares; once its place knows it no longer, its run tells how it ended, here or in its store."""
    try:
        runs = find_sessions(Path(job.experiment))
    except OperantError:
        runs = []
    searching = read_search(Path(job.experiment))
    if job.store is not None:
        ending, frames = _stored(job.store)
    elif searching is not None:
        ending = "done" if searching["state"] == "done" else "stopped"
        frames = sum(row.frames for row in search_rows(Path(job.experiment)))
    else:
        ending, frames = _here(runs)
    state = place(job.place).state(job)
    if state == "gone" and ending is not None:
        state = ending
    return JobStatus(job, state, frames, None if searching else sum(run.max_frame for run in runs))


def list_jobs(root: str | Path = "runs") -> list[JobStatus]:
    """Every job that was sent from here, oldest first; one whose place does not answer is `unknown`."""
    return [_status_or_unknown(job) for job in jobs(Path(root))]


def resume_job(wanted: str, root: str | Path = "runs") -> JobPlan:
    """Plan a job that continues the run of one that has ended, by its id or name; `submit` submits it."""
    job = find_job(Path(root), wanted)
    if job_status(job).state in ("queued", "running"):
        raise LaunchError(f"job {job.id} has not ended", remedy=f"operant jobs stop {job.id}    (first)")
    return plan_again(Path(job.experiment), job.name)


def plan_again(experiment: Path, job_name: str | None = None) -> JobPlan:
    """Plan another job for a run that was launched before, at the place that its spec names."""
    if read_search(experiment) is not None:
        study = open_study(experiment)
        request = _request(study.spec, job_name, experiment, worker_tasks(study))
        return place(study.spec.meta.launch.on).plan(request)
    runs = find_sessions(experiment)
    spec = Spec.model_validate(runs[0].spec)
    return place(spec.meta.launch.on).plan(_request(spec, job_name, experiment, _tasks(spec, runs), runs))


def stop_job(wanted: str, root: str | Path = "runs") -> Job:
    """Ask a job, by its id or name, to save and end."""
    job = find_job(Path(root), wanted)
    place(job.place).stop(job)
    return job


def job_logs(wanted: str, root: str | Path = "runs") -> list[Path]:
    """The files that a job's output goes to, as far as they can be read from here."""
    job = find_job(Path(root), wanted)
    return list(place(job.place).logs(job))


def _request(
    spec: Spec,
    job_name: str | None,
    experiment: Path,
    tasks: Sequence[Sequence[str]],
    runs: Sequence[Run] = (),
) -> JobRequest:
    asked = spec.meta.launch
    if job_name is not None and not re.fullmatch(JOB_NAME, job_name):
        raise UsageError(
            f"{job_name!r} is no name of a job", remedy=f"small letters, digits and dashes, at most {LONGEST_NAME}"
        )
    resources = JobResources(asked.cpus, asked.gpus, asked.gpu, asked.memory_gb, asked.hours, asked.max_price)
    return JobRequest(
        name=job_name or _job_name(spec.name),
        experiment=experiment,
        tasks=tasks,
        resources=resources,
        setup=asked.setup,
        settings={} if asked.on == "local" else getattr(asked, asked.on).model_dump(mode="json"),
        extras=(NEEDS[spec.engine_name][1], "cloud", *(["search"] if spec.search else [])),
        spec=spec.name,
        sync=spec.meta.sync,
        parts=runs[0].document.get("parts", []) if runs else [],
        nodes=asked.nodes,
        processes_per_node=processes_per_node(spec, asked.nodes),
    )


def _tasks(spec: Spec, runs: Sequence[Run]) -> list[list[str]]:
    """One process for each session, or one for all where the engine trains them in one program."""
    if trains_together(spec):
        return [session_argv(runs[0], None, runs[1:])]
    return [session_argv(run, None) for run in runs]


def _status_or_unknown(job: Job) -> JobStatus:
    try:
        return job_status(job)
    except OperantError as error:
        return JobStatus(job, "unknown", 0, 0, str(error).splitlines()[0])


def _here(runs: Sequence[Run]) -> tuple[JobState | None, int]:
    """How sessions on this machine ended, and their frames; None where there is none."""
    states = {run.state for run in runs}
    frames = sum(Session(run.path).frames for run in runs)
    if not states:
        return None, frames
    return "done" if states == {"done"} else "failed" if "failed" in states else "stopped", frames


def _stored(url: str) -> tuple[JobState | None, int]:
    """The same of a run in a store."""
    rows = list_stored(url)
    if not rows:
        return None, 0
    return rows[0].state if rows[0].state in ("done", "failed") else "stopped", rows[0].frames


def _job_name(name: str) -> str:
    """A name that every place takes: small letters, digits and dashes, beginning with a letter."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:LONGEST_NAME].strip("-")
    return plain if plain[:1].isalpha() else f"run-{plain}"
