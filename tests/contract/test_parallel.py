"""Several processes of one session: what one would compute, and an end without loose ends."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from operant.run.layout import METRICS_FILE
from operant.run.progress import is_timing
from operant.run.run import Run
from operant.spec.schema import Spec
from tests.contract.conftest import create, finish, start_cold
from tests.processes import lives, started_by, wait_until

ALGORITHMS: dict[str, dict[str, Any]] = {
    "ppo": {"name": "ppo", "time_horizon": 32, "minibatch_size": 64, "training_epoch": 3, "target_kl": 1.0},
    "a2c": {"name": "a2c", "training_frequency": 16, "normalize_advantages": True},
}


def spec_for(algorithm: str, processes: int, max_frame: int = 1536) -> Spec:
    return Spec.model_validate(
        {
            "name": f"{algorithm}-{processes}",
            "env": {
                "name": "Pendulum-v1",
                "num_envs": 4,
                "max_frame": max_frame,
                "normalize_obs": True,
                "normalize_reward": True,
            },
            "agent": {"algorithm": ALGORITHMS[algorithm], "net": {"hidden": [32, 32]}},
            "meta": {
                "processes": processes,
                "save_frequency": 512,
                "log_frequency": 512,
                "eval_episodes": 2,
                "final_episodes": 2,
            },
        }
    )


def newest(run: Run) -> Path:
    return sorted(path for path in run.checkpoints.iterdir() if path.name.isdigit())[-1]


def rows(run: Run) -> list[dict[str, float]]:
    """Metric rows, without the columns that have no value yet."""
    lines = [json.loads(line) for line in (run.path / METRICS_FILE).read_text().splitlines()]
    return [{name: value for name, value in line.items() if value is not None} for line in lines]


def wait_for_rows(run: Run, count: int) -> None:
    file = run.path / METRICS_FILE
    while not file.exists() or file.read_bytes().count(b"\n") < count:
        time.sleep(0.01)


def assert_same_training(one: Run, two: Run) -> None:
    """Both runs came to the same weights and metrics, up to the order of sums."""
    alone, together = (load_file(newest(run) / "policy.safetensors") for run in (one, two))
    assert alone.keys() == together.keys()
    for name, expected in alone.items():
        np.testing.assert_allclose(together[name], expected, rtol=1e-5, atol=1e-5, err_msg=name)
    for expected, found in zip(rows(one), rows(two), strict=True):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert is_timing(name) or found[name] == pytest.approx(value, rel=1e-3, abs=1e-4), name


@pytest.mark.parametrize("algorithm", ["ppo", pytest.param("a2c", marks=pytest.mark.slow)])
def test_two_processes_compute_what_one_does(algorithm: str, tmp_path: Path):
    one, two = (create(tmp_path / str(n), spec_for(algorithm, n)) for n in (1, 2))
    assert finish(one) == 0
    assert finish(two) == 0
    assert_same_training(one, two)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for children in Linux's /proc")
def test_a_follower_that_is_killed_ends_the_run_with_its_name_and_the_run_goes_on(tmp_path: Path):
    run = create(tmp_path / "run", spec_for("ppo", 2, max_frame=40_000))
    process = start_cold(run)
    wait_for_rows(run, 2)
    [follower] = started_by(process.pid, "follow_leader()")
    os.kill(follower, signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 3
    assert b"process 1 of 0 to 1, with environments 2 to 3, died: SIGKILL" in errors
    assert run.state == "failed"
    assert "SIGKILL" in run.document["error"]
    saved = int(newest(run).name)
    assert finish(run, "--until", str(saved + 600)) == 0
    assert int(newest(run).name) > saved


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for children in Linux's /proc")
@pytest.mark.slow
def test_no_follower_outlives_a_killed_leader(tmp_path: Path):
    run = create(tmp_path / "run", spec_for("ppo", 2, max_frame=40_000))
    process = start_cold(run)
    wait_for_rows(run, 1)
    [follower] = started_by(process.pid, "follow_leader()")
    process.kill()
    process.communicate()
    assert wait_until(lambda: not lives(follower)), "the follower outlived the leader"
