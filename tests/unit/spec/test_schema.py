from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from operant.spec.paths import SECTIONS
from operant.spec.schema import Spec
from operant.spec.settings.algorithms import DqnSpec
from operant.spec.settings.memories import PrioritisedReplaySpec, ReplaySpec
from operant.spec.settings.sections import AgentSpec, with_default_memory

FRACTION = st.floats(0, 1, allow_nan=False)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def schedules(low: float, high: float) -> st.SearchStrategy[object]:
    value = st.floats(low, high)
    line = st.fixed_dictionaries({"start": value, "end": value, "frames": st.integers(1, 10**6)})
    return value | line


OPTIMIZERS = st.fixed_dictionaries(
    {},
    optional={"lr": st.floats(1e-6, 1), "clip_grad_norm": st.none() | st.floats(0.1, 10), "lr_end_fraction": FRACTION},
)
NETS = st.fixed_dictionaries(
    {"optimizer": OPTIMIZERS}, optional={"hidden": st.lists(st.integers(1, 512), max_size=4), "init": st.just("torch")}
)
PPO = st.fixed_dictionaries(
    {"name": st.just("ppo"), "time_horizon": st.sampled_from([32, 64, 128]), "minibatch_size": st.just(32)},
    optional={"gamma": FRACTION, "clip_eps": schedules(0.01, 1), "target_kl": st.none() | st.floats(0.01, 1)},
)
DQN = st.fixed_dictionaries(
    {"name": st.just("dqn"), "training_frequency": st.sampled_from([8, 16])},
    optional={"epsilon": schedules(0, 1), "double": st.booleans(), "loss": st.sampled_from(["huber", "mse"])},
)
MEMORIES = st.none() | st.fixed_dictionaries(
    {"name": st.just("prioritised"), "batch_size": st.integers(1, 500)}, optional={"beta": schedules(0, 1)}
)
AGENTS = st.fixed_dictionaries({"algorithm": PPO, "net": NETS}) | st.fixed_dictionaries(
    {"algorithm": DQN, "net": NETS, "memory": MEMORIES}
)
SPECS = st.fixed_dictionaries(
    {
        "env": st.fixed_dictionaries(
            {"num_envs": st.sampled_from([1, 2, 4, 8])},
            optional={"kwargs": st.dictionaries(st.text(), PLAIN, max_size=3)},
        ),
        "agent": AGENTS,
        "meta": st.fixed_dictionaries({"seed": st.integers(0, 10**6), "threads": st.none() | st.integers(1, 8)}),
    }
)


@given(SPECS)
def test_a_resolved_spec_is_itself_again_after_json(data: dict[str, Any]) -> None:
    resolved = Spec.model_validate(data).model_dump(mode="json")
    again = Spec.model_validate(json.loads(json.dumps(resolved)))
    assert again == Spec.model_validate(data)
    assert again.model_dump(mode="json") == resolved


def test_the_default_spec_is_ppo_on_cartpole_without_a_memory() -> None:
    spec = Spec()
    assert (spec.agent.algorithm.name, spec.env.name, spec.agent.memory) == ("ppo", "CartPole-v1", None)


def test_every_field_says_what_it_means() -> None:
    fields = {(section.__name__, *each) for section in SECTIONS.values() for each in section.model_fields.items()}
    assert [name for *name, field in fields if not (field.description or "").endswith(".")] == []


@pytest.mark.parametrize("agent", [{"algorithm": {"name": "dqn"}}, {"algorithm": {"name": "dqn"}, "memory": None}])
def test_an_off_policy_algorithm_has_a_memory_by_default(agent: dict[str, Any]) -> None:
    assert AgentSpec.model_validate(agent).memory == ReplaySpec()
    assert with_default_memory(agent)["memory"] == {"name": "replay"}


def test_default_memory_also_reaches_an_agent_made_of_objects() -> None:
    assert AgentSpec(algorithm=DqnSpec()).memory == ReplaySpec()


def test_a_memory_that_was_named_is_kept() -> None:
    agent = {"algorithm": {"name": "dqn"}, "memory": {"name": "prioritised", "alpha": 0.5}}
    assert AgentSpec.model_validate(agent).memory == PrioritisedReplaySpec(alpha=0.5)


@pytest.mark.parametrize(
    "agent", [{}, {"algorithm": {"name": "ppo"}}, {"algorithm": {"name": "what"}}, "nonsense", None]
)
def test_no_memory_is_given_to_what_needs_none(agent: Any) -> None:
    assert with_default_memory(agent) is agent


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/b", "a b", "-x", "x" * 101])
def test_a_name_must_do_for_a_folder(name: str) -> None:
    with pytest.raises(ValidationError):
        Spec(name=name)
