"""Golden mistakes: each is made for real, and what the user reads is stored word for word.

A stored message must let a stranger mend the mistake at the first try: place, cause, next step.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from operant.launch.prepare import create_trial
from operant.run.checkpoint import publish
from operant.run.layout import LOCK_FILE
from operant.run.lock import RunLock
from operant.run.progress import Progress
from operant.run.run import Run

if TYPE_CHECKING:
    from tests.cli.conftest import Golden, Operant, Result

GOOD = """\
env:
  name: CartPole-v1
  num_envs: 4
  max_frame: 1000
agent:
  algorithm:
    name: ppo
    gamma: 0.99
    time_horizon: 128
    minibatch_size: 128
meta:
  max_session: 1
"""

CHECK = ("check", "spec.yaml", "--no-estimate")

# name: (what to change in the good spec, its replacement, the words typed)
IN_A_FILE: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "misspelt_key": ("gamma:", "gama:", CHECK),
    "misspelt_section": ("meta:", "mta:", CHECK),
    "wrong_type": ("gamma: 0.99", "gamma: high", CHECK),
    "out_of_range": ("gamma: 0.99", "gamma: 1.5", CHECK),
    "impossible_minibatch": ("minibatch_size: 128", "minibatch_size: 100", CHECK),
    "unknown_algorithm": ("name: ppo", "name: ppp", CHECK),
    "unknown_environment": ("CartPole-v1", "CartPol-v1", CHECK),
    "discrete_only_algorithm": (
        "  name: CartPole-v1\n",
        "  name: Pendulum-v1\n",
        (*CHECK, "-s", "agent.algorithm={name: dqn}", "-s", "env.max_frame=9000"),
    ),
    "episodes_without_end": (
        "  name: CartPole-v1\n",
        "  name: CliffWalking-v1\n",
        (*CHECK, "-s", "agent.algorithm={name: reinforce}"),
    ),
    "environment_arguments": ("max_frame: 1000", "max_frame: 1000\n  kwargs: {gravty: 9.8}", CHECK),
    "duplicate_key": ("    gamma: 0.99\n", "    gamma: 0.99\n    gamma: 0.95\n", CHECK),
    "bad_indentation": ("    gamma: 0.99", "   gamma: 0.99", CHECK),
    "left_over_variable": ("CartPole-v1", "${env}", CHECK),
    "override_typo": ("", "", (*CHECK, "-s", "agent.algorithm.gama=0.9")),
    "override_without_value": ("", "", (*CHECK, "-s", "agent.algorithm.gamma")),
    "override_matches_nothing": ("", "", (*CHECK, "-s", "lr=0.001")),
    "unknown_name_in_file": ("", "", ("check", "spec.yaml", "other")),
    "memory_for_ppo": ("meta:", "  memory: {name: replay}\nmeta:", CHECK),
    "cut_sequences": ("meta:", "  net: {type: gru}\nmeta:", (*CHECK, "-s", "agent.algorithm.minibatch_size=64")),
    "memory_of_single_steps": ("meta:", "  net: {type: lstm}\nmeta:", (*CHECK, "-s", "agent.algorithm={name: sarsa}")),
    "jax_without_memory": ("meta:", "  net: {type: gru}\nmeta:", (*CHECK, "-s", "engine=jax")),
    "jax_without_host_devices": ("CartPole-v1", "LunarLander-v3", (*CHECK, "-s", "engine=jax", "-s", "meta.devices=2")),
    "jax_without_devices": ("", "", (*CHECK, "-s", "engine=jax", "-s", "meta.devices=4")),
    "jax_unequal_shares": ("", "", (*CHECK, "-s", "engine=jax", "-s", "meta.devices=3")),
    "setting_of_the_jax_engine": ("max_session: 1", "max_session: 1\n  devices: 2", CHECK),
    "unheard_mask": (
        "  name: CartPole-v1\n",
        "  name: operant/Masked-v0\n",
        (*CHECK, "-s", "agent.algorithm={name: sac, training_start: 500}"),
    ),
}

# name: the words typed in an empty directory
TYPED: dict[str, tuple[str, ...]] = {
    "unknown_command": ("trian", "ppo_cartpole"),
    "unknown_option": ("train", "ppo_cartpole", "--sesions", "2"),
    "missing_argument": ("train",),
    "option_of_wrong_type": ("train", "ppo_cartpole", "--sessions", "many"),
    "option_out_of_range": ("train", "ppo_cartpole", "--sessions", "0"),
    "processes_without_a_number": (
        *("train", "ppo_cartpole", "--coordinator-address", "host-a:29400", "--num-processes", "2"),
    ),
    "process_out_of_range": (
        *("train", "ppo_cartpole", "--coordinator-address", "host-a:29400", "--num-processes", "2"),
        *("--process-id", "2"),
    ),
    "nodes_without_equal_shares": ("launch", "ppo_cartpole", "--on", "slurm", "-s", "meta.launch.nodes=2"),
    "nodes_elsewhere": ("launch", "ppo_cartpole", "-s", "meta.launch.nodes=2", "-s", "meta.processes=2"),
    "unknown_gpu": ("check", "grpo_tiny", "--device-memory", "h1000"),
    "memory_of_another_engine": ("check", "ppo_cartpole", "--device-memory", "h100"),
    "too_large_for_a_gpu": (
        *("check", "grpo_tiny", "--device-memory", "16GiB", "-s", "agent.model.tiny.layers=24"),
        *("-s", "agent.model.tiny.width=1024", "-s", "agent.algorithm.batch_size=4096"),
    ),
    "unknown_builtin": ("train", "ppo_cartpol"),
    "missing_file": ("train", "specs/cartpole.yaml"),
    "unknown_help_topic": ("help", "algorithm", "pppo"),
    "no_runs_yet": ("show", "latest"),
    "plot_of_nothing": ("plot", "ppo_cartpole"),
    "unknown_game": ("play", "hackmatrx"),
    "replay_that_is_not_there": ("hackmatrix", "replay", "mine.json"),
    "unknown_command_of_a_group": ("hackmatrix", "sevre"),
}

OTHER_FORMATS = {
    "bad_json": ("spec.json", '{"env": {"name": "CartPole-v1",}}'),
    "bad_toml": ("spec.toml", "[env]\nname = CartPole-v1\n"),
    "not_a_spec_format": ("spec.txt", "env: {}\n"),
    "several_specs": ("spec.yaml", "first:\n  env: {name: CartPole-v1}\nsecond:\n  env: {name: Acrobot-v1}\n"),
}


def assert_told(result: Result, golden: Golden, name: str) -> None:
    assert result.code in (2, 3)
    assert "Traceback" not in result.out + result.err
    golden(f"errors/{name}", f"{result.err}exit {result.code}\n")


@pytest.mark.parametrize("name", IN_A_FILE)
def test_a_mistake_in_a_spec(operant: Operant, golden: Golden, here: Path, name: str) -> None:
    wrong, instead, words = IN_A_FILE[name]
    assert wrong in GOOD
    (here / "spec.yaml").write_text(GOOD.replace(wrong, instead, 1) if wrong else GOOD)
    assert_told(operant(*words), golden, name)


@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_a_file_that_cannot_be_read(operant: Operant, golden: Golden, here: Path, name: str) -> None:
    file, text = OTHER_FORMATS[name]
    (here / file).write_text(text)
    assert_told(operant("check", file), golden, name)


@pytest.mark.parametrize("name", TYPED)
def test_a_mistake_on_the_command_line(operant: Operant, golden: Golden, name: str) -> None:
    assert_told(operant(*TYPED[name]), golden, name)


def test_a_package_that_is_not_installed(
    operant: Operant, golden: Golden, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "spec.yaml").write_text(GOOD)
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.setitem(sys.modules, "gymnasium.spaces", None)
    monkeypatch.delitem(sys.modules, "operant.engines.torch.compatibility", raising=False)
    monkeypatch.setattr("operant.install.install_extra", lambda extra: "COMMAND")
    assert_told(operant(*CHECK), golden, "missing_package")


def test_a_defect_of_ours_is_one_line_and_a_file(
    operant: Operant, golden: Golden, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("this was not foreseen")

    (here / "spec.yaml").write_text(GOOD)
    monkeypatch.setattr("operant.spec.load.load", broken)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert_told(operant(*CHECK), golden, "defect")
    (log,) = (here / "state" / "operant").iterdir()
    assert "Traceback" in log.read_text()
    assert "this was not foreseen" in log.read_text()


def test_debugging_shows_the_traceback(operant: Operant, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operant.spec.load.load", lambda *_: 1 / 0)
    monkeypatch.setenv("OPERANT_DEBUG", "1")
    result = operant(*CHECK)
    assert result.code == 3
    assert "Traceback" in result.err
    assert not (here / "state").exists()


@pytest.fixture
def runs(here: Path) -> list[Run]:
    """A trial of one session at runs/toy/20260101-000000, with checkpoints at frames 500 and 1000."""
    from operant.spec.load import load

    (here / "spec.yaml").write_text(GOOD)
    spec = load("spec.yaml", None, ["name=toy"]).spec.model_dump(mode="json")
    out = Path("runs/toy/20260101-000000")
    made = create_trial(spec, root=Path("runs"), out=out, source_text=GOOD, source_suffix=".yaml", command=["operant"])
    for run in made:
        for frames in (500, 1000):
            save(run, frames)
        run.record(state="stopped", attempts=1)
        for name in ("metrics.jsonl", "episodes.jsonl", "events.jsonl", "anchors.json", "provenance/attempt_001.json"):
            (run.path / name).parent.mkdir(exist_ok=True)
            (run.path / name).touch()
    return made


def save(run: Run, frames: int) -> None:
    publish(run.checkpoints, Progress(frames=frames), lambda at: (at / "weights").write_text("w" * frames), 1.0, {})


def damage(run: Run, frames: int) -> None:
    (run.checkpoints / f"{frames:012d}" / "weights").write_text("something else")


def remove_checkpoints(run: Run) -> None:
    shutil.rmtree(run.checkpoints)


def damage_all(run: Run) -> None:
    damage(run, 500)
    damage(run, 1000)


def nothing(run: Run) -> None:
    """The run as it is."""


# name: (what happens to the run, the words typed)
ON_A_RUN: dict[str, tuple[Callable[[Run], Any], tuple[str, ...]]] = {
    "used_directory": (nothing, ("train", "spec.yaml", "--out", "runs/toy/20260101-000000")),
    "resume_of_no_run": (nothing, ("resume", "spec.yaml")),
    "unknown_run": (nothing, ("show", "tyo")),
    "eval_without_checkpoint": (remove_checkpoints, ("eval", "toy")),
    "eval_with_only_corrupt_checkpoints": (damage_all, ("eval", "toy")),
    "eval_of_a_corrupt_checkpoint": (lambda run: damage(run, 500), ("eval", "toy", "--checkpoint", "500")),
    "unknown_checkpoint": (nothing, ("eval", "toy", "--checkpoint", "700")),
    "damaged_run_file": (lambda run: (run.path / "run.json").write_text('{"name": '), ("show", "toy")),
    "fork_of_corrupt_checkpoints": (damage_all, ("resume", "toy", "-s", "env.max_frame=9000")),
    "fork_changes_the_network": (nothing, ("resume", "toy", "-s", "agent.net.hidden=[8]", "-s", "env.max_frame=9000")),
    "fork_without_budget": (nothing, ("resume", "toy", "-s", "agent.algorithm.gamma=0.9")),
    "fork_with_a_typo": (nothing, ("resume", "toy", "-s", "env.max_frames=9000")),
    "plot_of_an_empty_run": (nothing, ("plot", "toy")),
    "plot_over_an_unknown_axis": (nothing, ("plot", "toy", "--x", "hours")),
    "film_of_unknown_kind": (nothing, ("watch", "toy", "--out", "film.avi")),
    "film_that_exists": (nothing, ("watch", "toy", "--out", "spec.yaml")),
    "schema_that_exists": (nothing, ("schema", "--out", "spec.yaml")),
}


@pytest.mark.parametrize("name", ON_A_RUN)
def test_a_mistake_with_a_run(operant: Operant, golden: Golden, runs: list[Run], name: str) -> None:
    happens, words = ON_A_RUN[name]
    happens(runs[0])
    assert_told(operant(*words), golden, name)


def test_resuming_what_is_being_trained(operant: Operant, golden: Golden, runs: list[Run]) -> None:
    runs[0].record(state="running")
    lock = RunLock(runs[0].path / LOCK_FILE)
    lock.acquire()
    try:
        assert_told(operant("resume", "toy"), golden, "resume_of_a_running_run")
    finally:
        lock.release()


def test_a_full_disk(operant: Operant, golden: Golden, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (here / "spec.yaml").write_text(GOOD)
    monkeypatch.setattr("operant.run.disk.os.fsync", full)
    monkeypatch.setattr("operant.run.disk._free_bytes", lambda place: 4096)
    assert_told(operant("train", "spec.yaml", "--out", "runs/full"), golden, "full_disk")


def test_a_corrupt_newest_checkpoint_is_reported_and_the_one_before_used(
    operant: Operant, golden: Golden, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    from operant.run.episode import Episode

    class Engine:
        """Plays one perfect episode."""

        @staticmethod
        def evaluate(run: Run, checkpoint: Any, *_: object) -> list[Episode]:
            return [Episode("CartPole-v1", "eval", 0, checkpoint.at, 500.0, 500, "truncated")]

    damage(runs[0], 1000)
    monkeypatch.setattr("operant.api.evaluation.engine_of_run", lambda run: Engine)
    result = operant("eval", "toy")
    assert result.code == 0
    golden("errors/corrupt_newest_checkpoint", f"{result.err}{result.out}exit 0\n")


@pytest.mark.parametrize("name", [*IN_A_FILE, *TYPED])
def test_the_same_mistake_as_json(operant: Operant, here: Path, name: str) -> None:
    wrong, instead, words = IN_A_FILE.get(name) or ("", "", TYPED[name])
    (here / "spec.yaml").write_text(GOOD.replace(wrong, instead, 1) if wrong else GOOD)
    plain = operant(*words)
    told = operant(*words, "--json")
    document = json.loads(told.out)
    assert document["exit"] == told.code == plain.code
    assert document["cause"].splitlines()[0] in plain.err
