"""Jobs of a real Slurm: four seeds as an array of which one task is preempted, and one session on two nodes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from operant.run.layout import METRICS_FILE
from operant.run.records import Records, difference
from operant.run.run import Run
from tests.e2e import slurm_cluster
from tests.processes import wait_until

ROOT = Path(__file__).parents[2]
TRAINING = ["ppo_cartpole", "-s", "env.max_frame=60000", "-s", "meta.log_frequency=2000"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(slurm_cluster.missing()), reason=slurm_cluster.missing()),
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with slurm_cluster.cluster(tmp_path_factory.mktemp("slurm")) as config:
        yield {**os.environ, "SLURM_CONF": str(config), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def command(*words: str, cwd: Path, environment: dict[str, str]) -> str:
    ran = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, f"{words}: {ran.stdout} {ran.stderr}"
    return ran.stdout


def test_a_preempted_task_is_requeued_and_ends_byte_identical(tmp_path: Path, environment: dict[str, str]) -> None:
    operant = (sys.executable, "-m", "operant")
    command(*operant, "train", *TRAINING, "--out", "undisturbed", "--plain", cwd=tmp_path, environment=environment)
    command(*operant, "launch", *TRAINING, "--on", "slurm", "-y", "--out", "job", cwd=tmp_path, environment=environment)
    sessions = [tmp_path / "job" / "trial_000" / f"session_{number}" for number in range(4)]
    assert wait_until(lambda: all((s / METRICS_FILE).exists() for s in sessions), seconds=300)

    # A job of the better partition wants one CPU of a node whose four are taken: one task must go.
    command("sbatch", "-p", "high", "-c", "1", "--wrap", "sleep 1", cwd=tmp_path, environment=environment)
    log = tmp_path / "job" / "launch"
    assert wait_until(lambda: "PREEMPTION" in "".join(path.read_text() for path in log.glob("*.log")), seconds=300)
    assert wait_until(lambda: "(BeginTime)" in command("squeue", cwd=tmp_path, environment=environment), seconds=120)
    for task in command("squeue", "-h", "-t", "PD", "-o", "%A", cwd=tmp_path, environment=environment).split():
        command("scontrol", "update", f"JobId={task}", "StartTime=now", cwd=tmp_path, environment=environment)

    told = command(*operant, "jobs", "follow", "1", cwd=tmp_path, environment=environment)
    assert "job 1 done at" in told
    attempts = [len(list((session / "provenance").glob("attempt_*.json"))) for session in sessions]
    assert sorted(attempts) == [1, 1, 1, 2], "one was preempted, after it had begun"
    for session in sessions:
        undisturbed = tmp_path / "undisturbed" / "trial_000" / session.name
        assert difference(Records.of(Run.open(session)), Records.of(Run.open(undisturbed))) is None


def test_stop_saves_and_the_run_goes_on_elsewhere(tmp_path: Path, environment: dict[str, str]) -> None:
    operant = (sys.executable, "-m", "operant")
    words = ["launch", *TRAINING, "--on", "slurm", "-y", "--out", "job", "--sessions", "1"]
    command(*operant, *words, cwd=tmp_path, environment=environment)
    session = tmp_path / "job" / "trial_000" / "session_0"
    assert wait_until(lambda: (session / METRICS_FILE).exists(), seconds=300)
    command(*operant, "jobs", "stop", "1", cwd=tmp_path, environment=environment)
    told = command(*operant, "jobs", "follow", "1", cwd=tmp_path, environment=environment)
    assert "job 1 stopped at" in told
    command(*operant, "resume", "job", "--plain", cwd=tmp_path, environment=environment)
    (listed,) = json.loads(command(*operant, "jobs", "--json", cwd=tmp_path, environment=environment))["jobs"]
    assert listed["state"] == "done"
    assert listed["frames"] >= 60_000


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with slurm_cluster.cluster(tmp_path_factory.mktemp("nodes"), nodes=2) as config:
        yield {**os.environ, "SLURM_CONF": str(config), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


ENGINES = {
    "torch": ["-s", "meta.processes=2", "-s", "env.max_frame=20480"],
    "jax": ["-s", "meta.devices=2", "-s", "engine=jax", "-s", "env.max_frame=102400"],
}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_session_on_two_nodes_is_stopped_and_resumed_and_ends_as_one_that_was_not(
    engine: str, tmp_path: Path, two_nodes: dict[str, str]
) -> None:
    operant, training = (sys.executable, "-m", "operant"), ["ppo_cartpole", "--sessions", "1", *ENGINES[engine]]
    training += ["-s", "meta.log_frequency=2000", "-s", "meta.save_frequency=4000", "-s", "meta.launch.nodes=2"]
    words = ["launch", *training, "--on", "slurm", "-y", "--out"]
    command(*operant, *words, "undisturbed", cwd=tmp_path, environment=two_nodes)
    assert "job 1 done at" in command(*operant, "jobs", "follow", "1", cwd=tmp_path, environment=two_nodes)
    command(*operant, *words, "job", cwd=tmp_path, environment=two_nodes)
    session = tmp_path / "job" / "trial_000" / "session_0"
    assert wait_until(lambda: (session / METRICS_FILE).exists(), seconds=300)
    command(*operant, "jobs", "stop", "2", cwd=tmp_path, environment=two_nodes)
    assert "job 2 stopped at" in command(*operant, "jobs", "follow", "2", cwd=tmp_path, environment=two_nodes)
    command(*operant, "jobs", "resume", "2", "-y", cwd=tmp_path, environment=two_nodes)
    assert "job 3 done at" in command(*operant, "jobs", "follow", "3", cwd=tmp_path, environment=two_nodes)
    whole = tmp_path / "undisturbed" / "trial_000" / "session_0"
    assert difference(Records.of(Run.open(session)), Records.of(Run.open(whole))) is None
    assert "process 1 of 0 to 1 follows" in (tmp_path / "job" / "launch" / "slurm_0.log").read_text()
