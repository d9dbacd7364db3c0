"""The script that Slurm is given, run by a real shell in place of Slurm."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from operant.launch.jobs.dstack import DstackPlace
from operant.launch.jobs.job import Job, JobRequest, JobResources, LaunchError, Place
from operant.launch.jobs.local import LocalPlace
from operant.launch.jobs.slurm import SlurmPlace
from tests.processes import wait_until

SMALL = JobResources(cpus=2, gpus=0, gpu=None, memory_gb=None, hours=1, max_price=None)
SAVES = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.3), Path("saved").touch(), sys.exit(4)))
Path("begun").touch()
time.sleep(60)
"""


def script(folder: Path, *tasks: list[str], resources: JobResources = SMALL, **settings: object) -> str:
    request = JobRequest("job", folder, tasks, resources, ["export FROM_SETUP=1"], settings)
    plan = SlurmPlace().plan(request)
    (text,) = plan.files.values()
    return str(text)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What Slurm sets, and a scontrol that writes down what it is asked."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scontrol").write_text('#!/bin/sh\necho "$@" > requeued\n')
    (tmp_path / "scontrol").chmod(0o755)
    slurm = {"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "2"}
    return {**os.environ, **slurm, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


def test_a_task_runs_its_own_command_after_the_setup(tmp_path: Path, shell: dict[str, str]) -> None:
    prints = "import os; print(os.environ['FROM_SETUP'], os.environ['OPERANT_CORES'], 'a b')"
    text = script(tmp_path, ["false"], [sys.executable, "-c", prints])
    ran = subprocess.run(["bash", "-c", text], env=shell, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "1 2 a b\n")
    failed = subprocess.run(["bash", "-c", text], env=shell | {"SLURM_ARRAY_TASK_ID": "0"})
    assert failed.returncode == 1


@pytest.mark.parametrize(("sent", "requeued"), [(signal.SIGTERM, False), (signal.SIGUSR1, True)])
def test_a_signal_lets_the_task_save_and_only_the_end_of_its_time_requeues_it(
    tmp_path: Path, shell: dict[str, str], sent: signal.Signals, requeued: bool
) -> None:
    text = script(tmp_path, ["false"], [sys.executable, "-c", SAVES])
    with subprocess.Popen(["bash", "-c", text], env=shell) as job:
        wait_until((tmp_path / "begun").exists, seconds=30)
        time.sleep(0.1)
        job.send_signal(sent)
        assert job.wait(30) == 4
    assert (tmp_path / "saved").exists()
    assert (tmp_path / "requeued").exists() == requeued
    if requeued:
        assert (tmp_path / "requeued").read_text() == "requeue 7_1\n"


SRUN = """#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift; done
SLURM_PROCID=0 "$@" && SLURM_PROCID=1 "$@"
"""


def test_a_task_on_two_nodes_is_started_once_for_each_process(tmp_path: Path, shell: dict[str, str]) -> None:
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)
    names = ("COORDINATOR_ADDRESS", "NUM_PROCESSES", "PROCESS_ID")
    prints = f"import os; print(*(os.environ['OPERANT_' + name] for name in {names}), 'a b', sep=',')"
    request = JobRequest("job", tmp_path, [[sys.executable, "-c", prints]], SMALL, nodes=2)
    (text,) = SlurmPlace().plan(request).files.values()
    slurm = {"SLURM_ARRAY_TASK_ID": "0", "SLURM_JOB_ID": "70003"}
    ran = subprocess.run(["bash", "-c", str(text)], env=shell | slurm, capture_output=True, text=True, check=True)
    address = f"{socket.gethostname()}:20003"
    assert ran.stdout == f"{address},2,0,a b\n{address},2,1,a b\n"
    assert "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n" in str(text)


@pytest.mark.parametrize("place", [LocalPlace(), DstackPlace()])
def test_places_that_cannot_start_a_session_on_several_nodes_say_so(tmp_path: Path, place: Place) -> None:
    with pytest.raises(LaunchError, match="a session on 2 nodes can be sent to slurm and to ray only"):
        place.plan(JobRequest("job", tmp_path, [["true"]], SMALL, nodes=2))


def test_resources_become_options(tmp_path: Path) -> None:
    asked = JobResources(cpus=4, gpus=0.5, gpu="a100", memory_gb=1.5, hours=0.51, max_price=None)
    text = script(tmp_path, ["true"], resources=asked, partition="gpu", options=["--exclusive"])
    options = {line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH")}
    assert {"--array=0-0", "--requeue", "--cpus-per-task=4", "--gres=gpu:a100:1", "--mem=1536M"} < options
    assert {"--time=31", "--partition=gpu", "--exclusive"} < options
    assert not any(option.startswith("--account") for option in options)


def test_without_slurm_the_advice_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(LaunchError, match=r"no squeue here[\s\S]*--dry-run"):
        SlurmPlace().state(Job("1", "slurm", "7", "job", "there", "now"))
