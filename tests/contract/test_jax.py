"""What only the jax engine does: several sessions in one program, and one program on several devices."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from operant.run.layout import METRICS_FILE
from operant.run.records import Records
from operant.run.run import Run
from operant.spec.schema import Spec
from tests.contract.conftest import META, SMALL_NET, differing
from tests.warm import WarmProcess

pytest.importorskip("jax")

AGENTS: dict[str, dict[str, Any]] = {
    "ppo": {"algorithm": {"name": "ppo", "time_horizon": 64, "minibatch_size": 64}, "net": SMALL_NET},
    "dqn": {
        "algorithm": {"name": "dqn", "training_start": 500, "training_frequency": 4, "target_update": 200},
        "memory": {"name": "replay", "max_size": 3000},
        "net": SMALL_NET,
    },
}
FRAMES = 12_000


def spec_of(agent: str, devices: int) -> Spec:
    env = {"name": "CartPole-v1", "num_envs": 4, "max_frame": FRAMES, "normalize_obs": True}
    meta = {**META, "devices": devices}
    return Spec.model_validate({"name": agent, "engine": "jax", "env": env, "agent": AGENTS[agent], "meta": meta})


def create(folder: Path, spec: Spec, lanes: int) -> list[Run]:
    document = spec.model_dump(mode="json")
    return [
        Run.create(folder / f"session_{k}", name=spec.name, spec=document, seed=7 + k, session=k, threads=1)
        for k in range(lanes)
    ]


def start(*runs: Run) -> subprocess.Popen[bytes] | WarmProcess:
    """The sessions as one process; where they ask for two devices, with two of the CPU's."""
    argv = [sys.executable, "-m", "operant", "session", *(str(run.path) for run in runs)]
    if runs[0].spec["meta"]["devices"] == 1:
        return WarmProcess(argv, runs[0].path / "errors.txt")
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    environment = {**os.environ, **flags, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(*runs: Run) -> None:
    process = start(*runs)
    errors = process.communicate(timeout=240)[1]
    assert process.returncode == 0, errors.decode()


def rows(run: Run) -> int:
    file = run.path / METRICS_FILE
    return file.read_bytes().count(b"\n") if file.exists() else 0


def kill_at_row(count: int, *runs: Run) -> None:
    """Start the sessions and SIGKILL them when the first has logged `count` rows more."""
    process, before = start(*runs), rows(runs[0])
    while process.poll() is None and rows(runs[0]) < before + count:
        time.sleep(0.002)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "the run ended before it could be killed: make it longer"


@pytest.mark.slow
def test_sessions_of_one_program_are_killed_and_resumed_together_or_alone(tmp_path: Path):
    spec = spec_of("ppo", devices=1)
    whole, broken = create(tmp_path / "whole", spec, 2), create(tmp_path / "broken", spec, 2)
    finish(*whole)
    assert [run.document["lane"] for run in whole] == [0, 1]
    assert {run.document["lanes"] for run in whole} == {2}
    assert Records.of(whole[0]).newest.files != Records.of(whole[1]).newest.files
    kill_at_row(7, *broken)
    kill_at_row(2, *broken)
    finish(broken[1])
    finish(broken[0])
    assert [run.state for run in broken] == ["done", "done"]
    assert [differing(*pair) for pair in zip(broken, whole, strict=True)] == [None] * len(whole)


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_a_session_on_two_devices_is_killed_and_resumed_exactly(agent: str, tmp_path: Path):
    spec = spec_of(agent, devices=2)
    whole, broken = create(tmp_path / "whole", spec, 1), create(tmp_path / "broken", spec, 1)
    finish(*whole)
    assert whole[0].document["device"].startswith("2 x")
    kill_at_row(5, *broken)
    kill_at_row(6, *broken)
    finish(*broken)
    assert differing(broken[0], whole[0]) is None
