"""Tasks of dstack: machines that are rented for one job, within a price and a time.

The machine keeps nothing: the run directory goes to the store before the job, comes from there when it begins, and
goes back while it trains. An interrupted task is started again by dstack and continues from the store. Operant's
source goes with the task as one packed file: dstack takes no more than 2 MiB, and packs nothing itself.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from operant.install import is_clone
from operant.launch.jobs.job import Job, JobPlan, JobRequest, JobState, LaunchError, refuse_nodes, require_sync
from operant.launch.jobs.source import SOURCE_FILE, source_tarball
from operant.launch.jobs.tools import run_tool

TASK_FILE = "task.dstack.yml"
# Passed on by name where they are set here; their values stay out of every file.
PASSED_ON = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "AWS_REGION"),
    *("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "HF_TOKEN"),
)
PRICES = {False: 0.15, True: 0.50}  # dollars an hour without and with a GPU, unless the spec says otherwise
_STATES: dict[str, JobState] = {
    **dict.fromkeys(("submitted", "pending", "provisioning"), "queued"),
    **dict.fromkeys(("running", "terminating"), "running"),
}


class DstackPlace:
    """Whatever dstack server this machine is configured for."""

    def plan(self, request: JobRequest) -> JobPlan:
        """One task file, and the source beside it."""
        refuse_nodes(request)
        store = require_sync(request, "a rented machine keeps nothing", ("s3", "hf"))
        if not is_clone():
            raise LaunchError(
                "dstack is sent Operant's source, which only a clone of the repository has",
                remedy="run this with the Operant of a clone",
            )
        folder, task = request.folder, _task(request, store)
        wanted, hours = task["resources"], request.resources.hours
        gpu = f", {wanted['gpu']['count']} GPU {request.resources.gpu or ''}".rstrip() if "gpu" in wanted else ""
        lines = [
            f"machine   {wanted['cpu'][:-2]} CPUs or more, {wanted['memory'][:-2]} memory or more{gpu}",
            f"price     at most ${task['max_price']:g} an hour, {hours:g} h: ${task['max_price'] * hours:.2f} in all",
            f"variables {', '.join(task['env']) or 'none'} (handed over by dstack, written to no file)",
        ]
        text = "# Written by `operant launch`; JSON is YAML.\n" + json.dumps(task, indent=2) + "\n"
        command = ["dstack", "apply", "-f", str(folder / TASK_FILE), "-y", "--detach"]
        files = {folder / TASK_FILE: text, folder / SOURCE_FILE: source_tarball(request.parts)}
        return JobPlan("dstack", request, files, command, lines, store)

    def submit(self, plan: JobPlan) -> str:
        """The name that dstack knows the run by."""
        _dstack(plan.command)
        task = str(plan.files[plan.request.folder / TASK_FILE]).partition("\n")[2]
        return json.loads(task)["name"]

    def state(self, job: Job) -> JobState:
        """From the list of dstack's runs."""
        told = json.loads(_dstack(["dstack", "ps", "--all", "--json"]) or "[]")
        runs = told.get("runs", []) if isinstance(told, dict) else told
        states = [run.get("status") for run in runs if _name(run) == job.ident]
        return _STATES.get(str(states[0]), "gone") if states else "gone"

    def stop(self, job: Job) -> None:
        """The task gets SIGTERM, and saves."""
        _dstack(["dstack", "stop", "-y", job.ident])

    def logs(self, job: Job) -> Iterator[Path]:
        """None here: `dstack logs NAME` has them."""
        yield from ()


def _task(request: JobRequest, store: str) -> dict[str, Any]:
    each, settings = request.resources, request.settings
    count = len(request.tasks)
    resources: dict[str, Any] = {
        "cpu": f"{each.cpus * count}..",
        "memory": f"{math.ceil((each.memory_gb or 2) * count)}GB..",
    }
    if each.gpus:
        wanted = {"count": math.ceil(each.gpus * count)}
        resources["gpu"] = wanted | {"name": [each.gpu]} if each.gpu else wanted
    extras = shlex.join(part for extra in request.extras for part in ("--extra", extra))
    task = {
        "type": "task",
        "name": _unique(request.name),
        "python": settings["python"],
        "env": [name for name in PASSED_ON if os.environ.get(name)],
        "files": [f"{SOURCE_FILE}:{SOURCE_FILE}"],
        "commands": [
            f"mkdir -p operant && tar -xzf {SOURCE_FILE} -C operant && cd operant",
            *request.setup,
            f"scripts/uv run {extras} operant resume {shlex.quote(store)} --plain",
        ],
        "resources": resources,
        "max_price": each.max_price or PRICES[bool(each.gpus)],
        "max_duration": f"{math.ceil(each.hours * 60)}m",
        "spot_policy": settings["spot"],
        "retry": {"on_events": ["no-capacity", "interruption"], "duration": f"{math.ceil(each.hours)}h"},
    }
    return task | {name: settings[name] for name in ("backends", "regions") if settings[name]}


def _unique(name: str) -> str:
    """A name that no other run has: dstack would stop that one and take its place. It takes 41 characters."""
    return f"{name[:34].rstrip('-')}-{secrets.token_hex(3)}"


def _name(run: dict[str, Any]) -> Any:
    return run.get("run_name") or run.get("run_spec", {}).get("run_name")


def _dstack(command: Sequence[str]) -> str:
    remedy = "uv tool install dstack    (then `dstack init` in this folder)"
    return run_tool(command, LaunchError("dstack is not installed", remedy=remedy))
