"""Jobs in the background of this machine: they go on when the terminal closes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from operant.launch.jobs.job import Job, JobPlan, JobRequest, JobState, refuse_nodes

LOG_FILE = "local.log"


class LocalPlace:
    """One process that trains all sessions, as `operant resume` does, with a session of its own."""

    def plan(self, request: JobRequest) -> JobPlan:
        """Nothing is written but the log."""
        refuse_nodes(request)
        command = [sys.executable, "-m", "operant", "resume", str(request.experiment.resolve()), "--plain"]
        return JobPlan("local", request, {}, command, [f"log       {request.folder / LOG_FILE}"])

    def submit(self, plan: JobPlan) -> str:
        """Start it; the ident is its process id and when that process began, so that no other is taken for it."""
        folder = plan.request.folder
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / LOG_FILE).open("ab") as log, Path(os.devnull).open("rb") as nothing:
            files = [(os.POSIX_SPAWN_DUP2, source.fileno(), to) for source, to in ((nothing, 0), (log, 1), (log, 2))]
            pid = os.posix_spawn(plan.command[0], list(plan.command), os.environ, file_actions=files, setsid=True)
        return f"{pid}@{_started(pid)}"

    def state(self, job: Job) -> JobState:
        """Running, or gone."""
        return "running" if _pid(job) is not None else "gone"

    def stop(self, job: Job) -> None:
        """As Ctrl-C would."""
        pid = _pid(job)
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)

    def logs(self, job: Job) -> Iterator[Path]:
        """The one log."""
        yield job.folder / LOG_FILE


def _pid(job: Job) -> int | None:
    pid, _, started = job.ident.partition("@")
    return int(pid) if pid.isdigit() and started and _started(int(pid)) == started else None


def _started(pid: int) -> str:
    """When a process began, in clock ticks since the machine did; empty if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return _started_by_ps(pid)
    return "" if fields[0] in "ZX" else fields[19]


def _started_by_ps(pid: int) -> str:
    """The same where there is no /proc."""
    found = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.strip()
