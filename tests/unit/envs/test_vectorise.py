"""Which way of stepping is chosen, for which environments, on which machine."""

from __future__ import annotations

import pytest

from operant.envs.cores import CORES_VARIABLE
from operant.envs.vectorise import Way, choose
from operant.spec.settings.sections import EnvSpec


@pytest.mark.parametrize(
    ("name", "num", "cores", "asked", "way"),
    [
        ("CartPole-v1", 64, 8, "auto", Way("serial")),
        ("HalfCheetah-v5", 8, 8, "auto", Way("serial")),
        ("HalfCheetah-v5", 16, 1, "auto", Way("serial")),
        ("HalfCheetah-v5", 16, 8, "auto", Way("processes", 2)),
        ("BipedalWalker-v3", 64, 3, "auto", Way("processes", 3)),
        ("HalfCheetah-v5", 64, 8, "serial", Way("serial")),
        ("CartPole-v1", 4, 1, "processes", Way("processes", 2)),
        ("CartPole-v1", 4, 8, "processes", Way("processes", 4)),
        ("CartPole-v1", 1, 8, "processes", Way("serial")),
    ],
)
def test_the_way_fits_family_number_and_cores(name, num, cores, asked, way, monkeypatch):
    monkeypatch.setenv(CORES_VARIABLE, str(cores))
    assert choose(EnvSpec(name=name, vectorization=asked), num) == way


def test_brief_play_never_starts_processes(monkeypatch):
    monkeypatch.setenv(CORES_VARIABLE, "8")
    assert choose(EnvSpec(name="HalfCheetah-v5"), 64, brief=True) == Way("serial")


def test_it_is_told_in_words():
    assert Way("serial").words(1) == "1 environment"
    assert Way("serial").words(4) == "4 environments stepped one after another"
    assert Way("processes", 2).words(8) == "8 environments stepped side by side in 2 processes"
    assert str(Way("processes", 2)) == "processes (2)"
