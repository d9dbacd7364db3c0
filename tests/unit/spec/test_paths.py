from __future__ import annotations

import pytest

from operant.spec.fields import Closed
from operant.spec.paths import find, help_command, known_paths, owner_of, title
from operant.spec.schedules import Linear
from operant.spec.schema import Spec
from operant.spec.settings.algorithms import DqnSpec, PpoSpec
from operant.spec.settings.memories import PrioritisedReplaySpec
from operant.spec.settings.sections import EnvSpec

DQN = {"agent": {"algorithm": {"name": "dqn"}, "memory": {"name": "prioritised"}}}


@pytest.mark.parametrize(
    ("path", "data", "owner"),
    [
        (("env", "name"), {}, EnvSpec),
        (("agent", "algorithm", "gamma"), {}, PpoSpec),
        (("agent", "algorithm", "gamma"), DQN, DqnSpec),
        (("agent", "memory", "alpha"), DQN, PrioritisedReplaySpec),
        (("agent", "algorithm", "epsilon", "start"), DQN, Linear),
        (("env", "kwargs", "anything", "deep"), {}, EnvSpec),
        (("env",), "not even a mapping", Spec),
    ],
)
def test_a_path_leads_to_the_field_that_the_data_chooses(
    path: tuple[str, ...], data: object, owner: type[Closed]
) -> None:
    slot = find(path, data)
    assert slot is not None
    assert slot.owner is owner


@pytest.mark.parametrize(
    "path",
    [("enw",), ("env", "nam"), ("env", "name", "x"), ("agent", "algorithm", "training_start"), ("meta", "seed", 0)],
)
def test_a_path_may_lead_nowhere(path: tuple[str | int, ...]) -> None:
    assert find(path, {}) is None


def test_an_item_of_a_list_has_its_own_kind() -> None:
    slot = find(("agent", "net", "hidden", 0), {})
    assert slot is not None
    assert slot.type.words == "whole number"


def test_the_owner_of_an_unknown_key_is_the_section_it_was_put_in() -> None:
    assert owner_of(("agent", "algorithm", "gama"), DQN) is DqnSpec
    assert owner_of(("nonsense",), {}) is Spec
    assert owner_of(("nonsense", "deep", "deeper"), {}) is Spec


def test_titles_and_help_commands() -> None:
    assert (title(Spec), title(PpoSpec), title(EnvSpec)) == ("a spec", "ppo", "env")
    assert help_command(PpoSpec) == "operant help algorithm ppo"


def test_known_paths_are_those_of_the_choices_made() -> None:
    paths = set(known_paths(DQN))
    assert {("env", "name"), ("agent", "algorithm", "double"), ("agent", "memory", "alpha")} <= paths
    assert ("agent", "algorithm", "time_horizon") not in paths
    assert ("agent", "algorithm", "epsilon", "start") not in paths
