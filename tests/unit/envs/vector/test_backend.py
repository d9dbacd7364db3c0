"""Which way of stepping is chosen, for which environments, on which machine."""

from __future__ import annotations

import pytest

from operant.envs.cores import CORES_VARIABLE
from operant.envs.vector.backend import Backend, choose_backend
from operant.spec.settings.sections import EnvSpec


@pytest.mark.parametrize(
    ("name", "num", "cores", "asked", "way"),
    [
        ("CartPole-v1", 64, 8, "auto", Backend("serial")),
        ("HalfCheetah-v5", 8, 8, "auto", Backend("serial")),
        ("HalfCheetah-v5", 16, 1, "auto", Backend("serial")),
        ("HalfCheetah-v5", 16, 8, "auto", Backend("processes", 2)),
        ("BipedalWalker-v3", 64, 3, "auto", Backend("processes", 3)),
        ("HalfCheetah-v5", 64, 8, "serial", Backend("serial")),
        ("CartPole-v1", 4, 1, "processes", Backend("processes", 2)),
        ("CartPole-v1", 4, 8, "processes", Backend("processes", 4)),
        ("CartPole-v1", 1, 8, "processes", Backend("serial")),
        ("ALE/Pong-v5", 64, 16, "auto", Backend("native")),
        ("ALE/Pong-v5", 64, 16, "serial", Backend("native")),
        ("ALE/Pong-v5", 64, 16, "processes", Backend("processes", 8)),
        ("ALE/Pong-v5", 16, 2, "processes", Backend("processes", 2)),
    ],
)
def test_the_way_fits_family_number_and_cores(name, num, cores, asked, way, monkeypatch):
    monkeypatch.setenv(CORES_VARIABLE, str(cores))
    assert choose_backend(EnvSpec(name=name, vectorization=asked), num) == way


def test_brief_play_never_starts_processes(monkeypatch):
    monkeypatch.setenv(CORES_VARIABLE, "8")
    assert choose_backend(EnvSpec(name="HalfCheetah-v5"), 64, brief=True) == Backend("serial")


def test_it_is_told_in_words():
    assert Backend("serial").describe(1) == "1 environment"
    assert Backend("serial").describe(4) == "4 environments stepped one after another"
    assert Backend("processes", 2).describe(8) == "8 environments stepped side by side in 2 processes"
    assert str(Backend("processes", 2)) == "processes (2)"
