"""Specs as artefacts: what may be changed, and how the lab's report is read."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from operant.envs.research.catalogue import SHIPPED
from operant.envs.research.grading import Unfit
from operant.envs.research.kit.lab import Lab, allowed_spec, reported, trained_score
from operant.errors import OperantError

START = SHIPPED / "lab_cartpole" / "visible" / "spec.yaml"
TEXT = START.read_text(encoding="utf-8")


def ran(report: object, code: int = 0) -> subprocess.CompletedProcess[bytes]:
    return subprocess.CompletedProcess([], code, json.dumps(report).encode(), b"what went wrong")


def test_settings_of_the_agent_may_be_changed_and_are_written_anew() -> None:
    text = TEXT.replace("gamma: 0.9,", "gamma: 0.97,").replace("num_envs: 4", "num_envs: 8")
    written = json.loads(allowed_spec(text, START))
    assert (written["agent"]["algorithm"]["gamma"], written["env"]["num_envs"]) == (0.97, 8)
    assert written["meta"]["final_episodes"] == 50


def test_what_is_written_anew_means_the_same(tmp_path: Path) -> None:
    path = tmp_path / "again.yaml"
    path.write_text(allowed_spec(TEXT, START))
    assert allowed_spec(path.read_text(), START) == path.read_text()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("max_frame: 20_000", "max_frame: 20_001", "env.max_frame"),
        ("CartPole-v1", "CartPole-v0", "env.name"),
        ("hidden: [16]", "hidden: [257]", "256 units"),
        ("hidden: [16]", "hidden: [16, 16, 16, 16, 16]", "4 layers"),
        ("{name: ppo, gamma: 0.9,", "{name: ppo, gama: 0.9,", "gama"),
        ("meta: {", "meta: {device: cuda, ", "meta.device"),
    ],
)
def test_what_may_not_be_changed_is_named(old: str, new: str, why: str) -> None:
    assert old in TEXT
    with pytest.raises(Unfit, match=why):
        allowed_spec(TEXT.replace(old, new), START)


def test_environments_are_limited_in_number() -> None:
    text = TEXT.replace("num_envs: 4", "num_envs: 128").replace("time_horizon: 256", "time_horizon: 16")
    with pytest.raises(Unfit, match=r"env\.num_envs may be 64 at most"):
        allowed_spec(text, START)


def test_another_algorithm_of_the_deep_engine_may_be_taken_but_no_language_model() -> None:
    agent = TEXT[TEXT.index("agent:") : TEXT.index("meta:")]
    assert allowed_spec(TEXT.replace(agent, "agent: {algorithm: {name: dqn}}\n"), START)
    with pytest.raises(Unfit):
        allowed_spec(TEXT.replace(agent, "agent: {algorithm: {name: grpo}}\n"), START)


def test_the_score_is_the_reports() -> None:
    outcome = {"state": "done", "cause": None, "verdict": "done"}
    assert reported(ran({"trials": [{"score": {"point": 12.5}}], "outcomes": [outcome]})) == 12.5


def test_a_failed_training_is_the_artefacts_fault_and_a_missing_report_is_ours() -> None:
    outcome = {"state": "failed", "cause": "the loss is not finite", "verdict": "failed"}
    with pytest.raises(Unfit, match="not finite"):
        reported(ran({"trials": [{"score": None}], "outcomes": [outcome]}))
    with pytest.raises(OperantError, match="what went wrong") as caught:
        reported(subprocess.CompletedProcess([], 1, b"", b"what went wrong"))
    assert not isinstance(caught.value, Unfit)


def test_a_machine_without_time_is_no_fault_of_the_artefact(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(TEXT)
    with pytest.raises(OperantError, match=r"longer than 0\.2 s") as caught:
        trained_score(path, 1, Lab(START, sessions=1, seconds=0.2))
    assert not isinstance(caught.value, Unfit)


@pytest.mark.slow
def test_a_training_that_asks_too_much_of_a_processor_is_unfit(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(TEXT.replace("training_epoch: 1", "training_epoch: 1000"))
    with pytest.raises(Unfit, match="training failed"):
        trained_score(path, 1, Lab(START, sessions=1, cpu_seconds=15))


@pytest.mark.slow
def test_a_spec_is_trained_with_seeds_of_the_grading(tmp_path: Path) -> None:
    scores = []
    for folder, seed in (("a", 1 << 40), ("b", 1 << 40), ("c", 5)):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "spec.yaml"
        path.write_text(allowed_spec(TEXT, START))
        scores.append(trained_score(path, seed, Lab(START, sessions=1)))
    assert scores[0] == scores[1] != scores[2]
