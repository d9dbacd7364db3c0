"""`operant launch` sends a spec somewhere as a job; `operant jobs` lists, follows and stops jobs."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from operant.cli.options import DEFAULT_ROOT, AsJson, OptionalTarget, Overrides, Root, Seed, Sessions, SpecName
from operant.cli.output import aside, document, say
from operant.errors import EXIT_DONE, EXIT_FAILED, EXIT_STOPPED, UsageError

if TYPE_CHECKING:
    from operant.api.launching import JobStatus
    from operant.launch.jobs.job import Job, JobPlan
    from operant.spec.settings.sections import MetaSpec

POLL_SECONDS = 1.0
ANY_SPEC = "ppo_cartpole"  # permissions are the same for every spec
app = typer.Typer(rich_markup_mode=None, no_args_is_help=False, invoke_without_command=True)
JobName = Annotated[str, typer.Argument(metavar="JOB", help="The job's id, name, or what its place calls it.")]


def launch(
    target: OptionalTarget = None,
    name: SpecName = None,
    overrides: Overrides = None,
    on: Annotated[
        str | None,
        typer.Option("--on", metavar="PLACE", help="local, slurm, ray, dstack or sagemaker; sets meta.launch.on."),
    ] = None,
    gpu: Annotated[bool, typer.Option("--gpu", help="One GPU for each process; sets meta.launch.gpus.")] = False,
    job_name: Annotated[
        str | None, typer.Option("--name", "-n", metavar="NAME", help="Name of the job.", show_default=False)
    ] = None,
    search_workers: Annotated[
        int | None,
        typer.Option(
            "--search", metavar="N", min=1, help="Search instead of training once, with N workers.", show_default=False
        ),
    ] = None,
    sessions: Sessions = None,
    seed: Seed = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Submit without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write the job's files and submit nothing.")] = False,
    local: Annotated[
        bool, typer.Option("--local", help="Run the container of a SageMaker job on this machine.")
    ] = False,
    print_iam: Annotated[
        bool, typer.Option("--print-iam", help="Print the permissions that SageMaker needs, and do nothing.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Run directory, instead of RUNS/NAME/STAMP.")
    ] = None,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Train a spec elsewhere: on a cluster, in a cloud, or in the background of this machine.

    \b
      operant launch ppo_cartpole --on slurm
      operant launch ppo_cartpole --on dstack --gpu -s meta.sync=s3://bucket/runs
      operant launch ppo_cartpole_search --on ray --search 4
    """
    from operant.api.launching import plan_job, submit
    from operant.cli.train import shortcuts
    from operant.spec.load import load

    show = aside if as_json else say
    chosen = [*_placed(on, gpu), *(overrides or []), *shortcuts(sessions, seed)]
    if target is None and not print_iam:
        raise UsageError("no spec is named", remedy="operant specs    (lists the built-in ones)")
    loaded = load(target or ANY_SPEC, name, chosen)
    if print_iam:
        return _print_iam(loaded.spec.meta)
    if local and loaded.spec.meta.launch.on != "sagemaker":
        raise UsageError("--local runs the container of a SageMaker job", remedy="--on sagemaker --local")
    plan = plan_job(loaded, job_name=job_name, search_workers=search_workers, root=root, out=out)
    show(*_plan_lines(plan))
    if dry_run:
        return _written(plan, as_json)
    if not yes and not _agreed():
        show("not submitted")
        return EXIT_STOPPED
    return _run_container(plan) if local else _submitted(submit(plan, root), as_json)


def _written(plan: JobPlan, as_json: bool) -> int:
    """The files of a job that is not submitted."""
    files = plan.write()
    (aside if as_json else say)("not submitted (--dry-run); written:", *(f"  {path}" for path in files))
    if as_json:
        document({"place": plan.place, "files": files, "command": plan.command, "exit": EXIT_DONE})
    return EXIT_DONE


def _placed(on: str | None, gpu: bool) -> list[str]:
    """`--on` and `--gpu` as the overrides that they stand for."""
    place = [f"meta.launch.on={on}"] if on else []
    return [*place, "meta.launch.gpus=1", "meta.device=auto"] if gpu else place


@app.callback()
def jobs(context: typer.Context, root: Root = Path(DEFAULT_ROOT), as_json: AsJson = False) -> int | None:
    """List the jobs that were launched from here, follow one, stop one.

    \b
      operant jobs
      operant jobs follow 3
      operant jobs stop 3
      operant jobs resume 3
    """
    if context.invoked_subcommand is not None:
        return None
    from operant.api.launching import list_jobs

    found = list_jobs(root)
    if as_json:
        document({"jobs": [_status(each) for each in found], "exit": EXIT_DONE})
    elif not found:
        say("no job was launched from here", "  launch:   operant launch SPEC --on slurm")
    else:
        from operant.report.formatting import columns

        rows = [["job", "place", "its id", "name", "state", "frames", "submitted"], *(_row(each) for each in found)]
        say(*columns(rows, {5}))
        for each in found:
            if each.note:
                aside(f"job {each.job.id}: {each.note}")
    return EXIT_DONE


@app.command("follow", short_help="Print a job's output as it comes, until it ends.")
def follow(job: JobName, root: Root = Path(DEFAULT_ROOT)) -> int:
    """Print a job's output as it comes, until it ends."""
    from operant.api.launching import job_logs, job_status
    from operant.launch.jobs.record import find_job

    found = find_job(root, job)
    read: dict[Path, int] = {}
    while True:
        status = job_status(found)
        _print_news(job_logs(found.id, root), read)
        if status.state not in ("queued", "running"):
            say(f"job {found.id} {status.state} at {status.progress}")
            return EXIT_DONE
        time.sleep(POLL_SECONDS)


@app.command("stop", short_help="Ask a job to save and end.")
def stop(job: JobName, root: Root = Path(DEFAULT_ROOT)) -> int:
    """Ask a job to save and end; `operant jobs resume` continues it."""
    from operant.api.launching import stop_job

    stopped = stop_job(job, root)
    say(f"job {stopped.id} ({stopped.place} {stopped.ident}) was asked to save and end")
    return EXIT_DONE


@app.command("resume", short_help="Continue the run of a job that has ended, as a new job.")
def resume(
    job: JobName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Submit without asking.")] = False,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Continue the run of a job that has ended, as a new job at the same place."""
    from operant.api.launching import resume_job, submit

    plan = resume_job(job, root)
    (aside if as_json else say)(*_plan_lines(plan))
    if not yes and not _agreed():
        return EXIT_STOPPED
    return _submitted(submit(plan, root), as_json)


def _submitted(job: Job, as_json: bool) -> int:
    if as_json:
        document({"job": job.id, "place": job.place, "ident": job.ident, "run": job.experiment, "exit": EXIT_DONE})
    else:
        say(
            f"job {job.id} ({job.place} {job.ident})",
            f"  follow:   operant jobs follow {job.id}",
            "  list:     operant jobs",
        )
    return EXIT_DONE


def _plan_lines(plan: JobPlan) -> list[str]:
    from operant.run.layout import shown

    return [
        f"job       {plan.request.name} on {plan.place}",
        f"run       {shown(plan.request.experiment)}",
        *plan.lines,
        *([f"store     {plan.store}"] if plan.store else []),
    ]


def _print_iam(meta: MetaSpec) -> int:
    """One JSON object of three documents, so that its parts can be taken out of a pipe."""
    from operant.launch.sagemaker.documents import iam_documents

    settings = meta.launch.sagemaker
    buckets = [settings.bucket or "BUCKET"]
    store = urlsplit(meta.sync or "")
    if store.scheme == "s3" and store.netloc not in buckets:
        buckets.append(store.netloc)
    role = settings.role or "arn:aws:iam::ACCOUNT:role/ROLE"
    document(iam_documents(role, settings.region or "REGION", buckets))
    return EXIT_DONE


def _run_container(plan: JobPlan) -> int:
    from operant.api.launching import upload
    from operant.launch.sagemaker.place import run_locally

    plan.write()
    upload(plan)
    with TemporaryDirectory(prefix="operant-sagemaker-") as base:
        code = run_locally(plan, Path(base))
    say(
        f"the container ended with code {code}",
        f"  continue: operant resume {plan.store}" if code else f"  fetch:    operant pull {plan.store}",
    )
    return EXIT_DONE if code == 0 else EXIT_FAILED


def _agreed() -> bool:
    if not sys.stdin.isatty():
        aside("nobody can be asked here: --yes submits, --dry-run only writes the files")
        return False
    return typer.confirm("submit?", default=False)


def _status(each: JobStatus) -> Mapping[str, object]:
    job = each.job
    facts: dict[str, object] = {
        "job": job.id,
        "place": job.place,
        "ident": job.ident,
        "name": job.name,
        "run": job.experiment,
    }
    return facts | {"state": each.state, "frames": each.frames, "max_frames": each.max_frames, "at": job.submitted}


def _row(each: JobStatus) -> list[str]:
    job = each.job
    return [
        job.id,
        job.place,
        job.ident,
        job.name,
        each.state,
        each.progress.removesuffix(" frames"),
        job.submitted[:19].replace("T", " "),
    ]


def _print_news(logs: list[Path], read: dict[Path, int]) -> None:
    """What was appended to the logs since the last call, each line marked with its file where there are several."""
    for log in logs:
        if not log.exists():
            continue
        with log.open("rb") as file:
            file.seek(read.get(log, 0))
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        read[log] = read.get(log, 0) + len(whole)
        mark = f"{log.stem}: " if len(logs) > 1 else ""
        for line in whole.decode("utf-8", "replace").splitlines():
            say(f"{mark}{line}")
