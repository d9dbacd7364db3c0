"""Jobs of a Slurm cluster: one array task for each process that trains, requeued when it is preempted or out of time.

A task that gets SIGTERM saves its checkpoint and ends; started again, it continues exactly there. Nothing else is
needed for preemption: Slurm requeues the task, which runs the same command on the same run directory. A session on
several nodes is one task too, whose processes srun starts.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from operant.envs.cores import CORES_VARIABLE
from operant.errors import EXIT_STOPPED
from operant.launch.jobs.job import Job, JobPlan, JobRequest, JobState, LaunchError
from operant.launch.jobs.tools import run_tool
from operant.run.processes.distributed_config import ADDRESS_VARIABLE, ID_VARIABLE, NUMBER_VARIABLE

SCRIPT = "job.sbatch"
SAVE_SECONDS = 120  # before its time is over a task is told, to save and to be requeued
FIRST_PORT, PORTS = 20_000, 10_000  # where the first process of a job on several nodes listens
# The steps of srun Slurm signals itself: a second signal would end them before they have saved.
ON_TERM = {False: "'kill -TERM \"$pid\"'", True: "true"}
_STATES: dict[str, JobState] = {"PENDING": "queued", "CONFIGURING": "queued", "REQUEUED": "queued"}


class SlurmPlace:
    """A cluster whose nodes see the run directory and this Python."""

    def plan(self, request: JobRequest) -> JobPlan:
        """An array in one file."""
        script = request.folder.resolve() / SCRIPT
        log = request.folder.resolve() / "slurm_%a.log"
        options = _options(request, log)
        each = request.resources
        lines = [
            f"array     {len(request.tasks)} tasks, each {request.size}{each.cpus} CPUs"
            + (f", {each.gpus:g} GPUs" if each.gpus else "")
            + (f", {each.memory_gb:g} GB" if each.memory_gb else "")
            + f", at most {each.hours:g} h at a time (requeued until it is done)",
            f"log       {str(log).replace('%a', '*')}",
        ]
        return JobPlan(
            "slurm", request, {script: _script(request, options)}, ["sbatch", "--parsable", str(script)], lines
        )

    def submit(self, plan: JobPlan) -> str:
        """The number that sbatch prints."""
        return _slurm(plan.command).partition(";")[0].strip()

    def state(self, job: Job) -> JobState:
        """Of the task that is furthest from its end: queued before running, gone when Slurm has none of them left."""
        told = _slurm(["squeue", "--noheader", "--array", "--jobs", job.ident, "--format", "%T"], "Invalid job id")
        states = {_STATES.get(word, "running") for word in told.split()} - {"gone"}
        return "running" if "running" in states else "queued" if states else "gone"

    def stop(self, job: Job) -> None:
        """Waiting tasks are taken out of the queue; running ones get SIGTERM, and the time to save."""
        _slurm(["scancel", job.ident])

    def logs(self, job: Job) -> Iterator[Path]:
        """One for each task."""
        yield from sorted(job.folder.glob("slurm_*.log"))


def _options(request: JobRequest, log: Path) -> list[str]:
    each, settings = request.resources, request.settings
    minutes = max(1, math.ceil(each.hours * 60))
    gpus = math.ceil(each.gpus * request.processes_per_node)
    memory = None if each.memory_gb is None else math.ceil(each.memory_gb * 1024 * request.processes_per_node)
    named = {
        "partition": settings.get("partition"),
        "account": settings.get("account"),
        "qos": settings.get("qos"),
        "nodes": request.nodes if request.nodes > 1 else None,
        "ntasks-per-node": request.processes_per_node if request.nodes > 1 else None,
        "cpus-per-task": each.cpus,
        "mem": None if memory is None else f"{memory}M",
        "gres": f"gpu:{each.gpu}:{gpus}" if gpus and each.gpu else f"gpu:{gpus}" if gpus else None,
        "time": minutes,
        "signal": f"B:USR1@{min(SAVE_SECONDS, minutes * 30)}",
        "output": log,
    }
    return [
        f"--job-name={request.name}",
        f"--array=0-{len(request.tasks) - 1}",
        "--requeue",
        "--open-mode=append",
        *(f"--{name}={value}" for name, value in named.items() if value is not None),
        *settings.get("options", ()),
    ]


def _script(request: JobRequest, options: Sequence[str]) -> str:
    """A shell script that Slurm can start any number of times."""
    tasks = [f"  {number}) set -- {shlex.join(task)} ;;" for number, task in enumerate(request.tasks)]
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {option}" for option in options),
        "",
        "# Preempted, Slurm sends SIGTERM and requeues this task. Near the end of its time it sends SIGUSR1, and the",
        "# task requeues itself. Either way the process saves, and continues there when it is started again.",
        f"trap {ON_TERM[request.nodes > 1]} TERM",
        "trap 'out_of_time=1; kill -TERM \"$pid\"' USR1",
        f"cd {shlex.quote(str(Path.cwd()))} || exit 1",
        *request.setup,
        'case "$SLURM_ARRAY_TASK_ID" in',
        *tasks,
        "esac",
        *(_on_nodes(request) if request.nodes > 1 else []),
        f'{CORES_VARIABLE}="$SLURM_CPUS_PER_TASK" "$@" &',
        "pid=$!",
        'while wait "$pid"; code=$?; kill -0 "$pid" 2>/dev/null; do :; done',
        f'if [ "$code" -eq {EXIT_STOPPED} ] && [ -n "$out_of_time" ]; then',
        '  scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"',
        "fi",
        'exit "$code"',
    ]
    return "\n".join(lines) + "\n"


def _on_nodes(request: JobRequest) -> list[str]:
    """Lines that make the task's command one of srun, which starts it on all nodes; this script runs on the first."""
    return [
        f'export {ADDRESS_VARIABLE}="$(hostname):$(({FIRST_PORT} + SLURM_JOB_ID % {PORTS}))"',
        f"export {NUMBER_VARIABLE}={request.num_processes}",
        # One that fails ends the others itself, once the first has recorded why.
        'set -- srun --kill-on-bad-exit=0 --cpus-per-task="$SLURM_CPUS_PER_TASK" \\',
        f'  bash -c \'{ID_VARIABLE}="$SLURM_PROCID" exec "$@"\' operant "$@"',
    ]


def _slurm(command: Sequence[str], unknown_job: str | None = None) -> str:
    """What a command of Slurm prints; nothing where it refuses with the words `unknown_job`."""
    remedy = "run this on a login node of the cluster, or write the files with --dry-run and submit them there"
    return run_tool(command, LaunchError(f"there is no {command[0]} here", remedy=remedy), unknown_job)
