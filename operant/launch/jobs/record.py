"""The job log: one line for each job that was submitted, in a file beside the runs."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from operant.launch.jobs.job import Job, LaunchError
from operant.run.layout import shown, timestamp

JOBS_FILE = "jobs.jsonl"


def add_job(
    root: Path,
    place: str,
    ident: str,
    name: str,
    experiment: Path,
    settings: Mapping[str, Any],
    store: str | None = None,
) -> Job:
    """Append a job to the log of `root`; its id is its number there."""
    path = root / JOBS_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        log.seek(0)
        number = sum(1 for _ in log) + 1
        job = Job(str(number), place, ident, name, str(experiment.resolve()), timestamp(), dict(settings), store)
        log.write(json.dumps(asdict(job), ensure_ascii=False) + "\n")
    return job


def jobs(root: Path) -> Iterator[Job]:
    """The jobs that were submitted from here, oldest first; a damaged line is passed over."""
    path = root / JOBS_FILE
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            yield Job(**json.loads(line))
        except (ValueError, TypeError):
            continue


def find_job(root: Path, wanted: str) -> Job:
    """A job by its id, by what its place calls it, or by its name (the newest); `LaunchError` if there is none."""
    known = list(jobs(root))
    for job in reversed(known):
        if wanted in (job.id, job.ident, job.name):
            return job
    remedy = "operant jobs    (lists them)" if known else "operant launch SPEC --on slurm    (submits one)"
    raise LaunchError(f"no job is called {wanted!r}", place=shown(root / JOBS_FILE), remedy=remedy)
