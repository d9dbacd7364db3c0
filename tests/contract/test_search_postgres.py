"""Two workers on one PostgreSQL study train every job once."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from operant.errors import RunError, UsageError
from operant.hpo.jobs import JobRow, Jobs
from operant.hpo.storage import connect, without_password
from operant.hpo.study import open_study
from tests.contract.searches import finish, kill, outcome, sessions, start, wait_for_orphans, write_spec

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
NOBODY = 65534
needs_postgres = pytest.mark.skipif(not BINARIES, reason="no initdb under /usr/lib/postgresql/*/bin")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A PostgreSQL of this test's own, as an unprivileged user, on a free port of this machine."""
    folder = Path(tempfile.mkdtemp(prefix="operant-pg-"))
    if os.getuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    unprivileged = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (secret := Path(tempfile.mkdtemp()) / "secret").write_text("hunter2\n")
    secret.parent.chmod(0o755)
    binary = BINARIES[-1].parent
    make = [binary / "initdb", "-D", folder / "data", "-U", "operant", "--pwfile", secret, "-A", "scram-sha-256"]
    subprocess.run([*map(str, make), "--no-sync"], check=True, capture_output=True, cwd="/", **unprivileged)
    options = ["-D", folder / "data", "-p", port, "-k", folder, "-c", "fsync=off", "-h", "127.0.0.1"]
    process = subprocess.Popen(
        [str(binary / "postgres"), *map(str, options)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
        **unprivileged,
    )  # fmt: skip
    url = f"postgresql://operant:hunter2@127.0.0.1:{port}/postgres"
    try:
        _await(url)
        yield url
    finally:
        process.send_signal(signal.SIGINT)  # does not wait for clients, as SIGTERM would
        process.wait()
        shutil.rmtree(folder)
        shutil.rmtree(secret.parent)


def _await(url: str) -> None:
    for _ in range(200):
        try:
            connect(url).dispose()
            return
        except RunError:
            time.sleep(0.1)
    connect(url)


@needs_postgres
def test_of_two_workers_one_gets_a_job(server: str) -> None:
    first, second = Jobs(server, "claims"), Jobs(server, "claims")
    assert [jobs.claim(JobRow(0, 0)) for jobs in (first, second)] == [True, False]
    assert [job.number for job in second.all()] == [0]
    assert Jobs(server, "another").all() == []


@needs_postgres
def test_a_job_of_a_dead_worker_is_taken_over_once(server: str) -> None:
    dead, first, second = (Jobs(server, "takeover") for _ in range(3))
    dead.worker = f"{socket.gethostname()}/4194305/1"
    assert dead.claim(JobRow(0, 0))
    first.worker, second.worker = "here/1/1", "here/2/2"
    (job,) = first.abandoned(first.all())
    assert [jobs.take_over(job) for jobs in (first, second)] == [True, False]
    assert not dead.finish(0, (1.0,), 10)
    assert first.finish(0, (1.0,), 10)


@needs_postgres
def test_a_wrong_password_is_one_line_without_it(server: str) -> None:
    with pytest.raises(RunError) as caught:
        connect(server.replace("hunter2", "hunter3"))
    assert "hunter" not in str(caught.value)
    assert "password authentication failed" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 2


def test_a_server_that_is_not_there_is_one_line() -> None:
    with pytest.raises(RunError, match="does not answer") as caught:
        connect("postgresql://me:sesame@127.0.0.1:1/none")
    assert "sesame" not in str(caught.value)


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(UsageError, match="not an address"):
        without_password("nonsense")


@pytest.mark.slow
@pytest.mark.timeout(3000)
@needs_postgres
def test_two_workers_at_once_train_no_trial_twice(server: str, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, trials=8, grace=512, frames=4096)
    finish(start(spec, "--out", tmp_path / "alone", "--workers", "2"))
    place = tmp_path / "shared"
    words = (spec, "--out", place, "--workers", "2", "--storage", server)
    first = start(*words)
    while not (place / "search.json").exists():
        time.sleep(0.05)
    second = start(place, "--storage", server)
    time.sleep(8)
    # One of the two is killed: the other takes its job over.
    kill(second)
    finish(first)
    wait_for_orphans(place)
    assert outcome(place) == outcome(tmp_path / "alone")
    assert "hunter2" not in "".join(
        file.read_text(errors="replace") for file in place.rglob("*.json") if file.is_file()
    )
    jobs = [job for job in Jobs(server, open_study(place).name).all() if not job.idle]
    assert len({(job.trial, job.rung) for job in jobs}) == len(jobs)
    for run in sessions(place):
        # A session is begun anew for each rung, and once more for the kill.
        own = [job for job in jobs if job.trial == int(run.path.parent.name.removeprefix("trial_"))]
        assert len(own) <= run.attempts <= len(own) + 2
