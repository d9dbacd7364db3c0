"""The spec that the contract is tried on."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.contract.checks import kill_moments
from operant.contract.targets import contract_spec, is_part, short_budget
from operant.spec.load import load


def test_a_long_spec_is_shortened_to_a_few_updates():
    spec = contract_spec("ppo_cartpole")
    assert spec.env.max_frame == short_budget(spec) < load("ppo_cartpole").spec.env.max_frame
    assert spec.meta.max_session == 1
    assert spec.env.max_frame // spec.meta.log_frequency == 16
    assert spec.agent == load("ppo_cartpole").spec.agent


def test_a_budget_that_is_asked_for_is_kept():
    assert contract_spec("ppo_cartpole", None, ["env.max_frame=20000"]).env.max_frame == 20_000


def test_off_policy_algorithms_get_past_their_start():
    spec = contract_spec("dqn_cartpole")
    assert spec.env.max_frame > spec.agent.algorithm.training_start  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("target", "env", "algorithm", "net"),
    [
        ("operant.templates.env:MyEnv", "operant.templates.env:MyEnv", "ppo", "mlp"),
        ("operant.templates.task:MyTask", "operant.templates.task:MyTask", "grpo", "mlp"),
        ("operant.templates.net:MyNet", "CartPole-v1", "ppo", "operant.templates.net:MyNet"),
        (
            "operant.templates.algorithm:MyAlgorithm",
            "CartPole-v1",
            "operant.templates.algorithm:MyAlgorithm",
            "mlp",
        ),
        ("operant.spec.settings.off_policy:Td3Spec", "Pendulum-v1", "operant.spec.settings.off_policy:Td3Spec", "mlp"),
    ],
)
def test_a_part_gets_a_small_spec(target: str, env: str, algorithm: str, net: str):
    spec = contract_spec(target)
    assert (spec.env.name, spec.agent.algorithm.name, spec.agent.net.type) == (env, algorithm, net)


def test_a_file_with_the_name_of_a_spec_is_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs.yaml").write_text("")
    assert not is_part("specs.yaml:ppo")
    assert not is_part("ppo_cartpole")
    assert is_part("specs:Ppo")


@pytest.mark.parametrize("rows", [1, 2, 5, 13, 40])
def test_kills_come_at_rows_that_there_are(rows: int):
    *at_rows, last = kill_moments(rows)
    numbers = [int(moment.removeprefix("row:")) for moment in at_rows]
    assert numbers == sorted(set(numbers))
    assert all(1 <= number <= rows for number in numbers)
    assert last == "checkpoint:1"
