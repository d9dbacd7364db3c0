from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from operant.engines import ENGINES, engine_of
from operant.engines.jax import lanes
from operant.engines.jax.compatibility import OPTIMIZERS
from operant.engines.jax.health import Health
from operant.engines.jax.lanes import groups
from operant.engines.jax.optimizer import RULES
from operant.envs.functional.env import Discrete
from operant.run.progress import Progress
from operant.run.run import Run
from operant.spec.schema import Spec
from operant.spec.settings.ppo import PpoSpec


def make(folder: Path, name: str, **algorithm: object) -> Run:
    spec = Spec.model_validate({"engine": "jax", "agent": {"algorithm": {"name": "ppo", **algorithm}}})
    return Run.create(folder / name, name=name, spec=spec.model_dump(mode="json"), seed=0, session=0, threads=1)


def lanes_of(runs: list[Run]) -> list[list[tuple[str, int, int]]]:
    return [[(each.run.name, each.lane, each.lanes) for each in row] for rows in groups(runs) for row in rows]


def test_settings_that_differ_in_traced_numbers_share_a_program(tmp_path: Path):
    plain, low, line = make(tmp_path, "a"), make(tmp_path, "b", gamma=0.9), make(tmp_path, "c", clip_eps=0.1)
    wide = make(tmp_path, "d", time_horizon=256)
    assert lanes_of([plain, low, line, wide]) == [[("a", 0, 3), ("b", 1, 3), ("c", 2, 3)], [("d", 0, 1)]]


def test_a_session_keeps_its_lane(tmp_path: Path):
    first, second, other = (make(tmp_path, name) for name in "abc")
    first.record(lane=2, lanes=4)
    second.record(lane=2, lanes=4)
    assert lanes_of([first, other, second]) == [[("a", 2, 4)], [("b", 2, 4)], [("c", 0, 1)]]
    assert [len(rows) for rows in groups([first, other, second])] == [2, 1]


def test_trials_of_one_program_have_the_lanes_that_each_would_have_alone(tmp_path: Path):
    runs = [make(tmp_path / trial, name, gamma=gamma) for trial, gamma in (("x", 0.9), ("y", 0.8)) for name in "ab"]
    assert lanes_of(runs) == [[("a", 0, 2), ("b", 1, 2)], [("a", 0, 2), ("b", 1, 2)]]
    assert len(groups(runs)) == 1


def test_an_error_in_one_trial_leaves_the_others_to_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    trained: list[str] = []

    def train(program: lanes.SharedProgram, row: lanes.Row, *_: object) -> None:
        trained.append(row[0].run.name)
        if trained == ["b"]:
            raise RuntimeError("b broke")

    monkeypatch.setattr(lanes.SharedProgram, "train", train)
    with pytest.raises(RuntimeError, match="b broke"):
        lanes.train_groups([make(tmp_path / name, name) for name in "bac"], None)
    assert trained == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("envs", "expected"), [(256, (8192, 4)), (511, (16352, 4)), (512, (8192, 2)), (2048, (8192, 2)), (8192, (16384, 2))]
)
def test_auto_scale_keeps_minibatches_and_bounds_gradient_steps(envs: int, expected: tuple[int, int]):
    ppo = PpoSpec(auto_scale=True, time_horizon=128, minibatch_size=envs * 128 // 4, training_epoch=4)
    assert ppo.scaled(envs) == expected
    assert ppo.model_copy(update={"auto_scale": False}).scaled(envs) == (envs * 32, 4)


def test_a_policy_that_goes_wrong_is_told_once():
    told: list[str] = []
    health = Health(Discrete(2), lambda kind, words: told.append(words))
    fine = {"policy/entropy": 0.5, "policy/kl": 0.01, "policy/clip_fraction": 0.1}
    health.look(Progress(), fine)
    assert told == []
    for _ in range(2):
        health.look(Progress(5000), {"policy/entropy": 1e-4, "policy/kl": 0.5, "policy/clip_fraction": 0.9})
    assert [words.partition(" is ")[0] for words in told] == ["policy/entropy", "policy/kl", "policy/clip_fraction"]
    assert "entropy_coef" in told[0]


def test_what_a_spec_may_name_is_what_there_is():
    assert tuple(RULES) == OPTIMIZERS


def test_checking_a_plain_spec_loads_no_jax():
    code = "import sys; from operant.engines import load; from operant.spec.schema import Spec;"
    code += "load('jax').validate(Spec(engine='jax')); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("name", "engine", "expected"),
    [
        ("CartPole-v1", "auto", "torch"),
        ("CartPole-v1", "jax", "jax"),
        ("HackMatrix-v0", "auto", "jax"),
        ("HackMatrix-v0", "torch", "torch"),
        ("gymnax:Catch-bsuite", "auto", "jax"),
        ("brax:ant", "auto", "jax"),
        ("playground/CheetahRun", "auto", "jax"),
    ],
)
def test_a_problem_has_its_engine_unless_the_spec_names_another(name: str, engine: str, expected: str):
    spec = Spec.model_validate({"engine": engine, "env": {"name": name}})
    assert spec.engine_name == expected
    assert engine_of(spec).__name__ == ENGINES[expected]
