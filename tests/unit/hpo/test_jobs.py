"""The table of jobs: one claim each, and a dead worker's job goes to one other."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from operant.hpo import jobs as module
from operant.hpo.jobs import JobRow, Jobs
from operant.hpo.storage import database_url


@pytest.fixture
def url(tmp_path: Path) -> str:
    return database_url(tmp_path, None)


def test_a_job_comes_back_as_it_was_stored(url: str) -> None:
    jobs = Jobs(url, "study")
    assert jobs.claim(JobRow(0, 3, 1, settings={"a.b": [1, None]}, attributes={"k": "v"}))
    assert jobs.finish(0, (1.5, 2.5), 640)
    (row,) = Jobs(url, "study").all()
    assert (row.trial, row.rung, row.finished, row.scores, row.frames) == (3, 1, True, (1.5, 2.5), 640)
    assert (row.settings, row.attributes) == ({"a.b": [1, None]}, {"k": "v"})


def test_a_job_is_claimed_once(url: str) -> None:
    first, second = Jobs(url, "study"), Jobs(url, "study")
    assert first.claim(JobRow(0, 0))
    assert not second.claim(JobRow(0, 0))


def test_the_job_of_a_process_that_ended_is_abandoned(url: str) -> None:
    code = f"from operant.hpo.jobs import *; Jobs({url!r}, 'study').claim(JobRow(0, 0))"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ})
    jobs = Jobs(url, "study")
    (lost,) = jobs.abandoned(jobs.all())
    assert jobs.take_over(lost)
    assert not jobs.take_over(lost)
    assert jobs.abandoned(jobs.all()) == []


def test_the_job_of_a_living_worker_stays_its_own(url: str) -> None:
    jobs, other = Jobs(url, "study"), Jobs(url, "study")
    jobs.claim(JobRow(0, 0))
    other.worker = "elsewhere/1/1"
    assert other.abandoned(other.all()) == []


def test_a_worker_elsewhere_is_dead_when_its_heartbeat_stands_still(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    far, here = Jobs(url, "study"), Jobs(url, "study")
    far.worker = "another-host/1/1"
    assert far.claim(JobRow(0, 0))
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    assert here.abandoned(here.all()) == []
    now[0] = module.STALE_SECONDS - 1
    assert far.beat([0]) == []
    assert here.abandoned(here.all()) == []
    now[0] += module.STALE_SECONDS + 1
    (lost,) = here.abandoned(here.all())
    assert here.take_over(lost)
    assert far.beat([0]) == [0]


def test_a_released_job_is_free_at_once(url: str) -> None:
    jobs, other = Jobs(url, "study"), Jobs(url, "study")
    other.worker = f"{socket.gethostname()}/1/x"
    jobs.claim(JobRow(0, 0))
    jobs.release([0])
    assert [job.number for job in other.abandoned(other.all())] == [0]
