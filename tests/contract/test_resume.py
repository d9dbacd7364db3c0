"""Nothing is lost: a killed and resumed run equals one that was never killed, bit for bit."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from operant.run.layout import METRICS_FILE
from operant.run.run import Run
from operant.spec.schema import Spec
from tests.contract.conftest import create, differing, finish, start


def rows_logged(run: Run) -> int:
    """How many metric rows are on disk."""
    file = run.path / METRICS_FILE
    return file.read_bytes().count(b"\n") if file.exists() else 0


def kill_at_random(run: Run, dice: random.Random, kills: int) -> bool:
    """Start the session and SIGKILL it a random number of rows later; False if it ended first.

    So many rows at most that a run of so many `kills` does not reach its end.
    """
    expected = run.max_frame // run.spec["meta"]["log_frequency"]
    rows = rows_logged(run) + dice.randint(1, max(1, (expected - 1) // kills))
    process = start(run)
    while process.poll() is None and rows_logged(run) < rows:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    return process.returncode == -signal.SIGKILL


def assert_survives(kills: int, case: Spec, whole: Run, folder: Path) -> None:
    """A run that is killed so often has the bytes of the `whole` one."""
    broken = create(folder / "broken", case)
    dice = random.Random(case.name)
    killed = sum(kill_at_random(broken, dice, kills) for _ in range(kills))
    assert killed >= kills - 1, "the run ended before it could be killed: make the case longer"
    finish(broken)
    assert broken.state == "done"
    assert differing(broken, whole) is None


def test_killed_twice_and_resumed_is_the_same_run(case: Spec, whole: Run, tmp_path: Path):
    assert_survives(2, case, whole, tmp_path)


@pytest.mark.slow
def test_killed_five_times_and_resumed_is_the_same_run(case: Spec, whole: Run, tmp_path: Path):
    assert_survives(5, case, whole, tmp_path)


def test_stopped_once_by_ctrl_c_and_resumed_is_the_same_run(case: Spec, whole: Run, tmp_path: Path):
    stopped = create(tmp_path / "stopped", case)
    process = start(stopped)
    while rows_logged(stopped) < 3:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 4
    assert stopped.state == "stopped"
    assert finish(stopped) == 0
    assert differing(stopped, whole) is None


def test_stopping_at_a_rung_and_going_on_is_the_same_run(case: Spec, whole: Run, tmp_path: Path):
    """What a search does: train to a part of the budget, decide, then train on."""
    rungs = create(tmp_path / "rungs", case)
    assert finish(rungs, "--until", "2400") == 0
    assert rungs.state == "stopped"
    assert finish(rungs) == 0
    assert differing(rungs, whole) is None


def test_a_corrupt_newest_checkpoint_costs_time_but_not_the_result(tmp_path: Path):
    spec = Spec.model_validate(
        {
            "name": "ppo-corrupt",
            "env": {"max_frame": 8192, "num_envs": 4},
            "agent": {"algorithm": {"name": "ppo", "time_horizon": 64, "minibatch_size": 64}},
            "meta": {"save_frequency": 2048, "log_frequency": 512, "eval_episodes": 2, "final_episodes": 2},
        }
    )
    whole, broken = create(tmp_path / "whole", spec), create(tmp_path / "broken", spec)
    finish(whole)
    finish(broken, "--until", "6144")
    newest = sorted(p for p in broken.checkpoints.iterdir() if p.name.isdigit())[-1]
    weights = newest / "policy.safetensors"
    damaged = bytearray(weights.read_bytes())
    damaged[-1] ^= 1
    weights.write_bytes(damaged)
    assert finish(broken) == 0
    assert differing(broken, whole) is None
    assert "corrupt_checkpoint" in (broken.path / "events.jsonl").read_text()
    assert newest.with_name(newest.name + ".corrupt").is_dir()


def test_a_second_ctrl_c_stops_at_once_and_the_checkpoint_stays_good(tmp_path: Path):
    spec = Spec.model_validate(
        {"name": "ppo-twice", "env": {"max_frame": 10_000_000}, "meta": {"save_frequency": 1024}}
    )
    run = create(tmp_path / "run", spec)
    process = start(run)
    while rows_logged(run) < 5:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 4
    assert finish(run, "--until", "8192") in (0, 4)
