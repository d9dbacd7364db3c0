"""What JAX computes on, as a command finds it that only checks a spec."""

from __future__ import annotations

import os

import pytest

from operant.engines import jax as engine
from operant.engines.jax import compatibility
from operant.engines.jax.platform import prepare_jax
from operant.engines.jax.preallocation import PREALLOCATE_VARIABLE
from operant.spec.load import load


@pytest.mark.parametrize("asked", [None, "true"])
def test_a_check_leaves_the_memory_of_a_gpu_to_the_sessions(asked: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PREALLOCATE_VARIABLE, raising=False)
    if asked is not None:
        monkeypatch.setenv(PREALLOCATE_VARIABLE, asked)
    seen: list[str | None] = []
    monkeypatch.setattr(compatibility, "check_compatibility", lambda _: seen.append(os.environ[PREALLOCATE_VARIABLE]))
    engine.validate(load("ppo_cartpole_jax", None, []).spec)
    assert seen == [asked or "false"]
    assert os.environ.get(PREALLOCATE_VARIABLE) == asked, "a session is another process, and takes what it needs"


@pytest.mark.parametrize(("settings", "chosen"), [([], None), (["env.vectorization=serial"], "false")])
def test_sessions_beside_each_other_share_a_gpu(
    settings: list[str], chosen: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Set first, so that what the code sets is taken away again.
    monkeypatch.setenv(PREALLOCATE_VARIABLE, "")
    monkeypatch.delenv(PREALLOCATE_VARIABLE)
    prepare_jax(load("ppo_cartpole_jax", None, settings).spec)
    assert os.environ.get(PREALLOCATE_VARIABLE) == chosen
