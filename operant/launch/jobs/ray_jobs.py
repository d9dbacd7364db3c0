"""Jobs of an existing Ray cluster, through Ray's job API; their tasks are spread over its nodes.

The job is a small driver that runs each task as a Ray task. A task whose node dies is started again on another node,
where it continues from its newest checkpoint, so the nodes must share the folder of the runs.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from operant.errors import EXIT_STOPPED
from operant.install import missing_package
from operant.launch.jobs.job import Job, JobPlan, JobRequest, JobState, LaunchError
from operant.launch.jobs.ray_nodes import run_on_nodes
from operant.launch.jobs.ray_tasks import run_task
from operant.run import requests
from operant.run.layout import SEARCH_FILE
from operant.run.run import Run, find_sessions

TASKS_FILE = "ray.json"
_STATES: dict[str, JobState] = {
    "PENDING": "queued",
    "RUNNING": "running",
    "STOPPED": "gone",
    "SUCCEEDED": "gone",
    "FAILED": "gone",
}


class RayPlace:
    """A cluster that runs already."""

    def plan(self, request: JobRequest) -> JobPlan:
        """The tasks as a file, and the driver that runs them."""
        path, each = request.folder.resolve() / TASKS_FILE, request.resources
        tasks = {
            "tasks": [list(task) for task in request.tasks],
            "folder": str(Path.cwd()),
            "logs": str(path.parent),
            "cpus": each.cpus,
            "gpus": each.gpus,
            "memory_gb": each.memory_gb,
            "seconds": each.hours * 3600,
            "nodes": request.nodes,
            "processes_per_node": request.processes_per_node,
        }
        command = [sys.executable, "-m", "operant.launch.jobs.ray_jobs", str(path)]
        lines = [
            f"tasks     {len(request.tasks)}, each {request.size}{each.cpus} CPUs"
            + (f", {each.gpus:g} GPUs" if each.gpus else ""),
            f"cluster   {request.settings.get('address') or 'RAY_ADDRESS, or the one on this machine'}",
            f"log       {path.parent}/ray_*.log",
        ]
        return JobPlan("ray", request, {path: json.dumps(tasks, indent=1) + "\n"}, command, lines)

    def submit(self, plan: JobPlan) -> str:
        """Ray's id of the job."""
        with _client(plan.request.settings.get("address")) as client:
            return client.submit_job(
                entrypoint=shlex.join(plan.command),
                metadata={"operant": plan.request.name},
                runtime_env={"env_vars": {"PYTHONPATH": ":".join(path for path in sys.path if path)}},
            )

    def state(self, job: Job) -> JobState:
        """What Ray says of the driver."""
        with _client(job.settings.get("address")) as client:
            return _STATES.get(str(client.get_job_status(job.ident)), "gone")

    def stop(self, job: Job) -> None:
        """Sessions that train are asked to save and end, and with them the driver; one that has none is ended now.

        So is a search, which would start such sessions again; what it trains continues at its newest checkpoint.
        """
        experiment = Path(job.experiment)
        training = [] if (experiment / SEARCH_FILE).is_file() else _training(experiment)
        for run in training:
            requests.request(run.path, "stop")
        if not training:
            with _client(job.settings.get("address")) as client:
                client.stop_job(job.ident)

    def logs(self, job: Job) -> Iterator[Path]:
        """One for each task."""
        yield from sorted(job.folder.glob("ray_*.log"))


def _training(experiment: Path) -> list[Run]:
    return [run for run in find_sessions(experiment) if run.state == "running"]


@contextmanager
def _client(address: str | None) -> Iterator[Any]:
    """A client of the cluster's job API; what it raises meanwhile becomes one line."""
    try:
        from ray.exceptions import AuthenticationError  # pyright: ignore[reportMissingImports]
        from ray.job_submission import JobSubmissionClient  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise missing_package("ray", "`--on ray`") from None
    place = address or "RAY_ADDRESS"
    try:
        yield JobSubmissionClient(address)
    except AuthenticationError:
        raise LaunchError(
            f"the Ray cluster at {place} wants a token that it was not given",
            remedy="set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH",
        ) from None
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise LaunchError(
            f"no Ray cluster answers at {place}: {str(error).splitlines()[0]}",
            remedy="--set meta.launch.ray.address=http://HOST:8265, or start one: ray start --head    (ray[default])",
        ) from None


def drive(path: Path) -> int:
    """Run the tasks of a file as Ray tasks, each retried when its node is lost; returns the worst exit code."""
    import ray  # pyright: ignore[reportMissingImports]

    plan = json.loads(path.read_text(encoding="utf-8"))
    ray.init(address="auto", log_to_driver=False)
    if plan["nodes"] > 1:
        return run_on_nodes(plan)
    memory = None if plan["memory_gb"] is None else int(plan["memory_gb"] * 2**30)
    remote = ray.remote(run_task).options(
        num_cpus=plan["cpus"], num_gpus=plan["gpus"], memory=memory, max_retries=-1, scheduling_strategy="SPREAD"
    )
    tasks = [
        remote.remote(task, plan["folder"], f"{plan['logs']}/ray_{number}.log", plan["cpus"])
        for number, task in enumerate(plan["tasks"])
    ]
    _, late = ray.wait(tasks, num_returns=len(tasks), timeout=plan["seconds"])
    for task in late:
        ray.cancel(task)
    return max(_code(task) for task in tasks)


def _code(task: Any) -> int:
    """The exit code of a task that has ended or ends; a canceled one has saved and stopped."""
    import ray  # pyright: ignore[reportMissingImports]
    from ray.exceptions import TaskCancelledError  # pyright: ignore[reportMissingImports]

    try:
        return ray.get(task)
    except TaskCancelledError:
        return EXIT_STOPPED


if __name__ == "__main__":
    sys.exit(drive(Path(sys.argv[1])))
