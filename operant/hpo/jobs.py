"""The table of jobs, in the database of the study.

To insert job n is to claim it: the key (study, n) is unique, so of two workers that decide the same job one gets it.
A claimed job belongs to its worker as long as that lives. A worker on this host is asked for by its process; one
elsewhere by its heartbeat, a number that it raises every few seconds. A job whose worker is gone is taken over.
"""

from __future__ import annotations

import json
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from operant.hpo.schedulers import Fork, Job
from operant.hpo.storage import connect, unreachable, without_password

if TYPE_CHECKING:
    from sqlalchemy import Table

HEARTBEAT_SECONDS = 5.0
STALE_SECONDS = 60.0
TABLE = "operant_jobs"
NOBODY = "nobody"
FORK = "fork"


@dataclass(frozen=True)
class JobRow(Job):
    """A job as it is stored: the settings of a trial stand in its first job, `worker` is who trains it.

    `attributes` is what the sampler asks to keep with the trial; of a fork, where it comes from.
    """

    settings: dict[str, Any] | None = None
    attributes: dict[str, Any] | None = None
    worker: str = ""
    beat: int = 0
    frames: int = 0

    @property
    def idle(self) -> bool:
        """Whether it only holds its place."""
        return self.trial is None

    @property
    def fork(self) -> Fork | None:
        """Where the trial comes from that a job begins; None where it does not begin a fork."""
        origin = (self.attributes or {}).get(FORK)
        return None if origin is None else Fork(**origin)


def worker_name() -> str:
    """This process, so that another on this host can tell whether it still lives."""
    return f"{socket.gethostname()}/{os.getpid()}/{_start_of(os.getpid())}"


class Jobs:
    """The jobs of one study."""

    def __init__(self, url: str, study: str) -> None:
        self.address = without_password(url)
        self.study = study
        self.worker = worker_name()
        self._engine = connect(url)
        self._seen: dict[int, tuple[int, float]] = {}
        self._table = _table()
        with unreachable(self.address):
            self._table.metadata.create_all(self._engine)

    def all(self) -> list[JobRow]:
        """Every job in order."""
        from sqlalchemy import select

        query = select(self._table).where(self._table.c.study == self.study).order_by(self._table.c.number)
        with unreachable(self.address), self._engine.connect() as connection:
            return [_row(row) for row in connection.execute(query).mappings()]

    def claim(self, job: JobRow) -> bool:
        """Insert the job as ours; False where another worker was first."""
        from sqlalchemy.exc import IntegrityError

        values = {
            "study": self.study,
            "number": job.number,
            "trial": job.trial,
            "rung": job.rung,
            "state": "done" if job.finished else "running",
            "settings": None if job.settings is None else json.dumps(job.settings),
            "attributes": None if job.attributes is None else json.dumps(job.attributes),
            "worker": self.worker,
            "beat": 0,
        }
        try:
            with unreachable(self.address), self._engine.begin() as connection:
                connection.execute(self._table.insert().values(values))
        except IntegrityError:
            return False
        return True

    def finish(self, number: int, scores: tuple[float, ...], frames: int) -> bool:
        """Record the result; False where the job is no longer ours."""
        change = {"state": "done", "scores": json.dumps(scores), "frames": frames}
        return self._change(number, change, self.worker)

    def beat(self, numbers: list[int]) -> list[int]:
        """Say that this worker lives; returns the jobs that another has taken over meanwhile."""
        lost = []
        for number in numbers:
            if not self._change(number, {"beat": self._table.c.beat + 1}, self.worker):
                lost.append(number)
        return lost

    def take_over(self, job: JobRow) -> bool:
        """Make the job of a dead worker ours; False where another was first."""
        return self._change(job.number, {"worker": self.worker, "beat": 0}, job.worker, job.beat)

    def release(self, numbers: list[int]) -> None:
        """Give back jobs of ours that are not finished, so that another worker need not wait for our heartbeat."""
        for number in numbers:
            self._change(number, {"worker": NOBODY}, self.worker)

    def abandoned(self, jobs: list[JobRow]) -> list[JobRow]:
        """The jobs that nobody trains any more: unfinished ones, whose worker is dead."""
        return [job for job in jobs if not job.finished and job.worker != self.worker and self._is_dead(job)]

    def _is_dead(self, job: JobRow) -> bool:
        if job.worker == NOBODY:
            return True
        host, pid, start = job.worker.rsplit("/", 2)
        if host == socket.gethostname() and pid.isdigit():
            return _start_of(int(pid)) != start
        beat, since = self._seen.get(job.number, (-1, 0.0))
        if beat != job.beat:
            self._seen[job.number] = (job.beat, time.monotonic())
            return False
        return time.monotonic() - since > STALE_SECONDS

    def _change(self, number: int, values: dict[str, Any], worker: str, beat: int | None = None) -> bool:
        from sqlalchemy import update

        table = self._table
        change = update(table).where(table.c.study == self.study, table.c.number == number, table.c.worker == worker)
        if beat is not None:
            change = change.where(table.c.beat == beat)
        with unreachable(self.address), self._engine.begin() as connection:
            return connection.execute(change.values(values)).rowcount == 1


def _table() -> Table:
    from sqlalchemy import Column, Integer, MetaData, String, Table, Text

    return Table(
        TABLE,
        MetaData(),
        Column("study", String(200), primary_key=True),
        Column("number", Integer, primary_key=True, autoincrement=False),
        Column("trial", Integer),
        Column("rung", Integer, nullable=False),
        Column("state", String(20), nullable=False),
        Column("settings", Text),
        Column("attributes", Text),
        Column("worker", String(300), nullable=False),
        Column("beat", Integer, nullable=False),
        Column("scores", Text),
        Column("frames", Integer),
    )


def _row(row: Any) -> JobRow:
    return JobRow(
        number=row["number"],
        trial=row["trial"],
        rung=row["rung"],
        finished=row["state"] == "done",
        scores=tuple(json.loads(row["scores"] or "[]")),
        settings=None if row["settings"] is None else json.loads(row["settings"]),
        attributes=None if row["attributes"] is None else json.loads(row["attributes"]),
        worker=row["worker"],
        beat=row["beat"],
        frames=row["frames"] or 0,
    )


def _start_of(pid: int) -> str | None:
    """When a process began, which with its number tells it from a later one; None where there is none such."""
    try:
        facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        # One that was killed and that its parent has not noticed yet does nothing any more.
        return None if facts[0] == "Z" else facts[19]
    except (OSError, IndexError):
        pass
    if Path("/proc/self").exists():
        return None
    try:
        os.kill(pid, 0)
    except OSError:
        return None
    return "alive"
