from __future__ import annotations

from typing import Any

import pytest

from operant.spec.load import load
from operant.spec.schedules import Linear
from operant.spec.settings.algorithms import DqnSpec
from operant.spec.settings.memories import PrioritisedReplaySpec, ReplaySpec
from tests.unit.spec.dialects.slm.conftest import ABSENT, FILES, Changed, data_of, native, refusal

A = "agent.algorithm"


def algorithm_of(loader: Changed, **changes: Any) -> DqnSpec:
    algorithm = loader({key.replace("__", "."): value for key, value in changes.items()}).spec.agent.algorithm
    assert isinstance(algorithm, DqnSpec)
    return algorithm


def test_every_setting_has_its_counterpart(dqn: Changed) -> None:
    spec = dqn().spec
    assert spec.agent.algorithm == DqnSpec(
        double=True,
        gamma=0.99,
        epsilon=Linear(start=1.0, end=0.01, frames=50_000),
        loss="huber",
        training_start=32,
        training_frequency=8,
        training_iter=4,
        target_update=100,
    )
    assert spec.agent.memory == PrioritisedReplaySpec(batch_size=32, max_size=50_000, alpha=0.6, beta=0.0, epsilon=1e-4)
    optimizer = spec.agent.net.optimizer
    assert (optimizer.name, optimizer.lr, optimizer.weight_decay) == ("adamw", 2.5e-4, 0.01)
    assert (optimizer.clip_grad_norm, optimizer.clip_each) == (10.0, False)


def test_the_one_called_dqn_is_double_and_says_so() -> None:
    loaded = load(str(FILES / "dqn_lunar.json"), "dqn_lunar")
    algorithm = loaded.spec.agent.algorithm
    assert isinstance(algorithm, DqnSpec)
    assert algorithm.double
    assert any("Double DQN" in remark.text for remark in loaded.remarks)
    assert (algorithm.polyak, algorithm.training_frequency, algorithm.loss) == (0.009975, 16, "mse")
    assert any("blends at each of 2 steps" in remark.text for remark in loaded.remarks), "0.005 twice in a round"
    assert algorithm.epsilon == Linear(start=1.0, end=0.039, begin=1000, frames=50_000)
    assert loaded.spec.agent.net.duelling
    assert loaded.spec.agent.memory == ReplaySpec(batch_size=64, max_size=50_000)


def test_batches_that_are_used_twice_become_more_batches(dqn: Changed) -> None:
    loaded = dqn({f"{A}.training_batch_iter": 2})
    assert isinstance(loaded.spec.agent.algorithm, DqnSpec)
    assert loaded.spec.agent.algorithm.training_iter == 8
    assert "4 x 2" in " ".join(map(str, loaded.remarks))


@pytest.mark.parametrize(("frequency", "native"), [(1, 8), (8, 8), (24, 24)])
def test_training_is_at_most_once_per_vector_step(dqn: Changed, frequency: int, native: int) -> None:
    assert algorithm_of(dqn, agent__algorithm__training_frequency=frequency).training_frequency == native


def test_a_frequency_between_vector_steps_is_taken_as_it_is(dqn: Changed) -> None:
    assert algorithm_of(dqn, agent__algorithm__training_frequency=20).training_frequency == 20


def test_training_starts_when_a_batch_is_there(dqn: Changed) -> None:
    assert algorithm_of(dqn, agent__memory__batch_size=64).training_start == 64
    assert algorithm_of(dqn, agent__algorithm__training_start_step=ABSENT).training_start == 32


def test_without_a_target_net_the_target_is_the_newest() -> None:
    algorithm = load(str(FILES / "older.json")).spec.agent.algorithm
    assert isinstance(algorithm, DqnSpec)
    assert (algorithm.double, algorithm.target_update) == (False, 1)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (f"{A}.action_policy", "thoughtful"),
        (f"{A}.explore_var_spec.name", "rate_decay"),
        ("agent.memory.name", "OnPolicyCrossEntropy"),
        ("agent.net.loss_spec.name", "L1Loss"),
        ("agent.net.update_type", "never"),
    ],
)
def test_what_would_change_results_is_refused_where_it_stands(dqn: Changed, key: str, value: Any) -> None:
    assert key in refusal(dqn, {key: value})
    assert any("LOST" in remark.text and remark.key == key for remark in dqn({key: value}, lossy=True).remarks)


def test_the_newest_transition_may_be_in_every_batch(dqn: Changed) -> None:
    memory = dqn({"agent.memory.use_cer": True}).spec.agent.memory
    assert memory is not None
    assert memory.combined


@pytest.mark.parametrize(("share", "native"), [(0.01, 0.01), (ABSENT, 0.0), (0, 0.0)])
def test_polyak_has_no_frequency_and_may_be_nothing(dqn: Changed, share: Any, native: float) -> None:
    changes = {"agent.net.update_type": "polyak", "agent.net.polyak_coef": 0.5, "agent.net.update_frequency": 100}
    loaded = dqn({**changes, "agent.net.polyak_coef": share})
    assert isinstance(loaded.spec.agent.algorithm, DqnSpec)
    assert loaded.spec.agent.algorithm.polyak == native
    assert "agent.net.update_frequency" in [remark.key for remark in loaded.remarks]


def test_a_boltzmann_policy_has_a_temperature() -> None:
    data = data_of("dqn_lunar.json", "ddqn_per_lunar")
    data["agent"]["algorithm"]["action_policy"] = "boltzmann"
    algorithm = native({**data, "search": None})[0]["agent"]["algorithm"]
    assert algorithm["exploration"] == "boltzmann"
    assert algorithm["temperature"] == {"start": 1.0, "end": 0.01, "frames": 50_000}
    assert "epsilon" not in algorithm
