"""Tasks of dstack: machines that are rented for one job, within a price and a time.

The machine keeps nothing: the run directory goes to the store before the job, comes from there when it begins, and
goes back while it trains. An interrupted task is started again by dstack and continues from the store.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from operant.launch.jobs.job import Job, JobPlan, JobRequest, JobState, LaunchError, require_sync

TASK_FILE = "task.dstack.yml"
# Passed on by name where they are set here; their values stay out of every file.
CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "HF_TOKEN")
PRICES = {False: 0.15, True: 0.50}  # dollars an hour without and with a GPU, unless the spec says otherwise
_STATES: dict[str, JobState] = {
    **dict.fromkeys(("submitted", "pending", "provisioning", "pulling"), "queued"),
    **dict.fromkeys(("running", "terminating"), "running"),
}


class DstackPlace:
    """Whatever dstack server this machine is configured for."""

    def plan(self, request: JobRequest) -> JobPlan:
        """One task file."""
        sync = require_sync(request, "a rented machine keeps nothing")
        path, task = request.folder / TASK_FILE, _task(request, sync)
        gpu = f", GPU {task['resources']['gpu']}" if "gpu" in task["resources"] else ""
        lines = [
            f"machine   {task['resources']['cpu']} CPUs, {task['resources']['memory']} memory{gpu}",
            f"price     at most ${task['max_price']:g} an hour, {request.resources.hours:g} h:"
            f" ${task['max_price'] * request.resources.hours:.2f} in all",
        ]
        text = "# Written by `operant launch`; JSON is YAML.\n" + json.dumps(task, indent=2) + "\n"
        command = ["dstack", "apply", "-f", str(path), "-y", "--detach"]
        return JobPlan("dstack", request, {path: text}, command, lines, uploads=[sync])

    def submit(self, plan: JobPlan) -> str:
        """The run's name."""
        _dstack(plan.command)
        return plan.request.name

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


def _task(request: JobRequest, sync: str) -> dict[str, Any]:
    each, settings = request.resources, request.settings
    count = len(request.tasks)
    resources: dict[str, Any] = {
        "cpu": f"{each.cpus * count}..",
        "memory": f"{math.ceil((each.memory_gb or 2) * count)}GB..",
    }
    if each.gpus:
        wanted = {"count": math.ceil(each.gpus)}
        resources["gpu"] = wanted | {"name": [each.gpu]} if each.gpu else wanted
    extras = shlex.join(part for extra in request.extras for part in ("--extra", extra))
    task = {
        "type": "task",
        "name": request.name,
        "python": settings.get("python", "3.12"),
        "env": [name for name in CREDENTIALS if os.environ.get(name)],
        "commands": [*request.setup, f"scripts/uv run {extras} operant resume {shlex.quote(sync)} --plain"],
        "resources": resources,
        "max_price": each.max_price or PRICES[bool(each.gpus)],
        "max_duration": f"{math.ceil(each.hours * 60)}m",
        "spot_policy": settings.get("spot", "auto"),
        "retry": {"on_events": ["no-capacity", "interruption"], "duration": f"{math.ceil(each.hours)}h"},
    }
    chosen = {name: settings[name] for name in ("backends", "regions") if settings.get(name)}
    return task | chosen


def _name(run: dict[str, Any]) -> Any:
    return run.get("run_name") or run.get("run_spec", {}).get("run_name")


def _dstack(command: Sequence[str]) -> str:
    if shutil.which("dstack") is None:
        raise LaunchError(
            "dstack is not installed", remedy="uv tool install dstack    (then `dstack init` in this folder)"
        )
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        cause = (ran.stderr.strip() or ran.stdout.strip() or f"exit code {ran.returncode}").splitlines()[-1]
        raise LaunchError(f"dstack refused: {cause}", remedy=f"{shlex.join(command)}    (by hand)")
    return ran.stdout
