"""A session in two processes that were started from outside: what one computes, and an end that says who died."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from operant.run.processes.distributed_config import DistributedConfig
from operant.run.run import Run
from operant.spec.schema import Spec
from tests.contract.conftest import create, differing
from tests.contract.test_parallel import assert_same_training, newest, spec_for, wait_for_rows
from tests.warm import WarmProcess

ROOT = str(Path(__file__).parents[2])
TWO_DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
Started = subprocess.Popen[bytes] | WarmProcess
ENGINES = [
    "torch",
    pytest.param("jax", marks=[pytest.mark.slow, pytest.mark.skipif(find_spec("jax") is None, reason="needs jax")]),
]


def shared(engine: str, processes: int, max_frame: int = 1536) -> Spec:
    """A spec for so many processes; of the jax engine, for two devices in any number of them."""
    if engine == "torch":
        return spec_for("ppo", processes, max_frame)
    env = {"name": "CartPole-v1", "num_envs": 4, "max_frame": max_frame, "normalize_obs": True}
    agent = {"algorithm": {"name": "ppo", "time_horizon": 64, "minibatch_size": 64}, "net": {"hidden": [16]}}
    meta = {"devices": 2, "log_frequency": 512, "save_frequency": 512, "eval_episodes": 2, "final_episodes": 2}
    return Spec.model_validate({"name": "ppo", "engine": "jax", "env": env, "agent": agent, "meta": meta})


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(run: Run, number: int, port: int, **more: str) -> Started:
    """Process `number` of two; those of the torch engine have its imports already."""
    environment = {**os.environ, "PYTHONPATH": ROOT, **more}
    DistributedConfig("127.0.0.1", port, 2, number, 60).export(environment)
    argv = [sys.executable, "-m", "operant", "session", str(run.path)]
    errors = run.path / f"errors_{number}.txt"
    if run.spec["engine"] == "auto":
        return WarmProcess(argv, errors, env=environment, errors=errors)
    with errors.open("ab") as file:
        return subprocess.Popen(argv, env=environment, stdout=file, stderr=file)


def start_both(run: Run) -> list[Started]:
    port = free_port()
    return [start(run, number, port) for number in (0, 1)]


def finish(run: Run) -> None:
    for process in start_both(run):
        process.communicate(timeout=240)
        assert process.returncode == 0, (run.path / "errors_0.txt").read_text() + (
            run.path / "errors_1.txt"
        ).read_text()


def finish_alone(run: Run) -> None:
    argv = [sys.executable, "-m", "operant", "session", str(run.path)]
    environment = {**os.environ, "PYTHONPATH": ROOT, **TWO_DEVICES}
    subprocess.run(argv, env=environment, check=True, capture_output=True)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_processes_compute_what_one_does(engine: str, tmp_path: Path):
    one, two = create(tmp_path / "one", shared(engine, 1)), create(tmp_path / "two", shared(engine, 2))
    finish_alone(one)
    finish(two)
    assert_same_training(one, two)


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("engine", ENGINES)
def test_the_death_of_either_process_ends_the_other_by_name_and_resume_is_exact(
    engine: str, victim: int, tmp_path: Path
):
    whole, broken = (create(tmp_path / name, shared(engine, 2, 8192)) for name in ("whole", "broken"))
    finish(whole)
    processes = start_both(broken)
    wait_for_rows(broken, 3)
    os.kill(processes[victim].pid, signal.SIGKILL)
    killed = time.monotonic()
    survivor = processes[1 - victim]
    for process in (survivor, processes[victim]):
        process.communicate(timeout=60)
    assert time.monotonic() - killed < 30
    assert survivor.returncode == 3
    assert f"process {victim} of 0 to 1" in (broken.path / f"errors_{1 - victim}.txt").read_text()
    if victim == 1:
        assert broken.state == "failed"
        assert "process 1 of 0 to 1" in broken.document["error"]
    finish(broken)
    assert differing(broken, whole) is None


@pytest.mark.slow
@pytest.mark.skipif(find_spec("jax") is None, reason="needs jax")
def test_a_run_of_two_processes_goes_on_in_one_that_has_their_devices(tmp_path: Path):
    whole, moved = (create(tmp_path / name, shared("jax", 2, 4096)) for name in ("whole", "moved"))
    finish(whole)
    processes = start_both(moved)
    wait_for_rows(moved, 3)
    for process in processes:
        process.send_signal(signal.SIGINT)  # the first saves and dismisses the other, which does not listen
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 4
    assert moved.state == "stopped"
    finish_alone(moved)
    theirs, ours = (load_file(newest(run) / "policy.safetensors") for run in (whole, moved))
    for name, expected in theirs.items():
        np.testing.assert_allclose(ours[name], expected, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.slow
def test_torchrun_on_two_nodes_trains_what_the_session_would_start_itself(tmp_path: Path):
    (tmp_path / "spec.json").write_text(shared("torch", 1).model_dump_json())
    environment = {**os.environ, "PYTHONPATH": ROOT, "OMP_NUM_THREADS": "1"}
    train = ["-m", "operant", "train", "spec.json", "--sessions", "1", "--plain", "--out"]
    subprocess.run(
        [sys.executable, *train, "whole", "-s", "meta.processes=2"], cwd=tmp_path, env=environment, check=True
    )
    nodes = ["--nnodes", "2", "--nproc-per-node", "1", "--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    torchrun = [sys.executable, "-m", "torch.distributed.run", *nodes, "--node-rank"]
    both = [subprocess.Popen([*torchrun, number, *train, "run"], cwd=tmp_path, env=environment) for number in "01"]
    assert [process.wait(240) for process in both] == [0, 0]
    run, whole = (Run.open(tmp_path / name / "trial_000" / "session_0") for name in ("run", "whole"))
    assert differing(run, whole) is None
