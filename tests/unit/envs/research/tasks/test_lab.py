"""Specs as artefacts: what may be changed, and how the lab's report is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from operant.envs.research.catalogue import SHIPPED
from operant.envs.research.grading import Unfit
from operant.envs.research.kit.lab import Lab, allowed_spec, reported, trained_score
from operant.envs.sandbox import Ran

START = SHIPPED / "lab_cartpole" / "visible" / "spec.yaml"
TEXT = START.read_text(encoding="utf-8")


def ran(report: object, code: int = 0) -> Ran:
    return Ran(code, json.dumps(report).encode(), b"what went wrong", 1.0)


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
        ("{name: ppo, gamma: 0.9,", "{name: ppo, critic_hidden: [257], gamma: 0.9,", "critic_hidden"),
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


def test_whatever_comes_of_a_training_instead_of_a_score_is_the_artefacts_fault() -> None:
    outcome = {"state": "failed", "cause": "the loss is not finite", "verdict": "failed"}
    with pytest.raises(Unfit, match="not finite"):
        reported(ran({"trials": [{"score": None}], "outcomes": [outcome]}))
    with pytest.raises(Unfit, match="what went wrong"):
        reported(Ran(1, b"", b"what went wrong", 1.0))
    with pytest.raises(Unfit, match="too much memory"):
        reported(Ran(-9, b"", b"", 1.0, "memory"))


@pytest.mark.usefixtures("sandboxes")
def test_a_training_that_takes_too_long_is_unfit() -> None:
    with pytest.raises(Unfit, match="too much time"):
        trained_score(TEXT, 1, Lab(START, sessions=1, seconds=0.2))


@pytest.mark.usefixtures("sandboxes")
def test_a_training_that_takes_too_much_memory_is_unfit() -> None:
    with pytest.raises(Unfit, match="too much memory"):
        trained_score(TEXT, 1, Lab(START, sessions=1, memory_mb=48))


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxes")
def test_a_training_that_asks_too_much_of_a_processor_is_unfit() -> None:
    text = TEXT.replace("training_epoch: 1", "training_epoch: 1000")
    with pytest.raises(Unfit, match="training"):
        trained_score(text, 1, Lab(START, sessions=1, cpu_seconds=15))


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxes")
def test_a_spec_is_trained_with_seeds_of_the_grading() -> None:
    spec = allowed_spec(TEXT, START)
    scores = [trained_score(spec, seed, Lab(START, sessions=1)) for seed in (1 << 40, 1 << 40, 5)]
    assert scores[0] == scores[1] != scores[2]
