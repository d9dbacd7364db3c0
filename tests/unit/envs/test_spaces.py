"""The spaces of an environment are the same in all its forms, and what differs between two is told in words."""

from __future__ import annotations

import pytest

from operant.envs.functional.find import in_gymnasium
from operant.envs.spaces import only_in_jax, spaces_of
from operant.spec.settings.sections import EnvSpec


@pytest.mark.parametrize("name", ["CartPole-v1", "Acrobot-v1", "MountainCar-v0", "Pendulum-v1", "HackMatrix-v0"])
def test_both_forms_have_the_same_spaces(name: str):
    compiled = spaces_of(EnvSpec(name=name), "jax")
    stepped = spaces_of(EnvSpec(name=name, vectorization="serial"), "jax")
    assert compiled.difference(stepped) is None
    assert compiled.masked is stepped.masked is (name == "HackMatrix-v0")
    assert spaces_of(EnvSpec(name=name), "torch").difference(compiled) is None


def test_the_spaces_of_a_task_of_mjx_are_known_without_mjx():
    pytest.importorskip("mujoco")
    theirs = spaces_of(in_gymnasium(EnvSpec(name="mjx/HalfCheetah-v5", kwargs={"iterations": 3})), "jax")
    assert theirs.difference(spaces_of(EnvSpec(name="HalfCheetah-v5"), "torch")) is None
    assert (theirs.shape, theirs.actions.size) == ((17,), 6)


@pytest.mark.parametrize(
    ("trained", "other", "words"),
    [
        ("CartPole-v1", "Pendulum-v1", "its observations are numbers of shape (3,), not numbers of shape (4,)"),
        (
            "MountainCar-v0",
            "MountainCarContinuous-v0",
            "its actions are real ones of shape (1,) between -1 and 1, not ",
        ),
        ("MountainCarContinuous-v0", "MountainCar-v0", "its actions are 3 discrete ones, not real ones"),
    ],
)
def test_what_differs_is_told_in_words(trained: str, other: str, words: str):
    told = spaces_of(EnvSpec(name=trained), "torch").difference(spaces_of(EnvSpec(name=other), "torch"))
    assert told is not None
    assert told.startswith(words)


@pytest.mark.parametrize(
    ("name", "only"),
    [
        ("mjx/HalfCheetah-v5", True),
        ("gymnax:Catch-bsuite", True),
        ("operant.envs.functional.classic:CartPole", True),
        ("CartPole-v1", False),
        ("HackMatrix-v0", False),
        ("operant/ProbeConstant-v0", False),
        ("some_module:Maze-v0", False),
        ("NoSuch-v0", False),
    ],
)
def test_which_environments_gymnasium_cannot_make(name: str, only: bool):
    assert only_in_jax(name) is only
