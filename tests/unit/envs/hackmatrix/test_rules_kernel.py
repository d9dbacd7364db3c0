"""The kernels: the bits of the JAX form, under what the engine does to them, and what happens where they cannot be."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from random import Random
from typing import Any

import jax
import numpy as np
import pytest

from operant.envs.hackmatrix.constants import ACTION_COUNT, FIRST_PROGRAM
from operant.envs.hackmatrix.kernel import build, calls
from operant.envs.hackmatrix.rules.env import HackMatrixEnv
from operant.errors import UsageError
from tests.unit.envs.hackmatrix.convert import state_of
from tests.unit.envs.hackmatrix.rules_form import SIDE_BY_SIDE, advance, keys_of, resetter, step, together, view
from tests.unit.envs.hackmatrix.starts import random_state, random_steps

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler here")
KERNEL = HackMatrixEnv(form="kernel")


def made_up(seed: int) -> Any:
    rng = Random(seed)
    return together([state_of(random_state(rng), (seed, k), 9, random_steps(rng)) for k in range(SIDE_BY_SIDE)])


def assert_same_bits(found: Any, wanted: Any) -> None:
    for (path, one), other in zip(jax.tree_util.tree_leaves_with_path(found), jax.tree.leaves(wanted), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.dtype, one.shape) == (other.dtype, other.shape), path
        assert one.tobytes() == other.tobytes(), f"{path}: games {np.argwhere(one != other)[:5].tolist()}"


@needs_compiler
def test_new_games_are_those_of_the_other_form() -> None:
    keys = keys_of(range(SIDE_BY_SIDE))
    assert_same_bits(jax.jit(jax.vmap(KERNEL.reset))(keys), resetter()(keys))


@needs_compiler
@pytest.mark.parametrize("seed", range(4))
def test_a_step_gives_the_same_bits(seed: int) -> None:
    states, rng = made_up(seed), np.random.default_rng(seed)
    play, masks = jax.jit(KERNEL.advance), jax.jit(jax.vmap(KERNEL.mask))
    met: set[int] = set()
    for turn in range(12):
        seen, mask = view(states)
        assert_same_bits((jax.vmap(KERNEL.observe)(states), masks(states)), (seen, mask))
        actions = np.where(mask | (rng.random((SIDE_BY_SIDE, 1)) < 0.03), rng.random(mask.shape), -1).argmax(-1)
        met |= set(actions[mask[np.arange(SIDE_BY_SIDE), actions]].tolist())
        keys = jax.random.split(jax.random.key(turn), SIDE_BY_SIDE)
        wanted = advance(states, actions, keys)
        assert_same_bits(play(states, actions.astype(np.int32), keys), wanted[:3])
        states = wanted.states
    assert len(met) > ACTION_COUNT - 4, f"only {sorted(met)} were tried"
    assert max(met) >= FIRST_PROGRAM


@needs_compiler
def test_a_step_without_reset_gives_the_same_bits() -> None:
    states, actions = made_up(7), np.arange(SIDE_BY_SIDE, dtype=np.int32) % ACTION_COUNT
    found = jax.jit(jax.vmap(KERNEL.step))(states, actions)
    wanted = step(states, actions)
    assert_same_bits(found, (wanted.states, wanted.outcome))


@needs_compiler
def test_lanes_are_games_like_others() -> None:
    states, keys = made_up(3), jax.random.split(jax.random.key(3), SIDE_BY_SIDE)
    actions = np.arange(SIDE_BY_SIDE, dtype=np.int32) % 5
    lanes = jax.tree.map(lambda leaf: leaf.reshape(3, -1, *leaf.shape[1:]), (states, actions, keys))
    found = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), jax.jit(jax.vmap(KERNEL.advance))(*lanes))
    assert_same_bits(found, jax.jit(KERNEL.advance)(states, actions, keys))


@needs_compiler
def test_what_is_given_is_not_changed() -> None:
    states = jax.tree.map(jax.numpy.asarray, made_up(5))
    before = jax.tree.map(np.array, states)
    jax.jit(KERNEL.advance)(states, np.zeros(SIDE_BY_SIDE, np.int32), jax.random.split(jax.random.key(0), SIDE_BY_SIDE))
    assert_same_bits(states, before)


@pytest.fixture
def nothing_decided() -> Any:
    calls.kernel_is_used.cache_clear()
    calls.register.cache_clear()
    yield
    calls.kernel_is_used.cache_clear()
    calls.register.cache_clear()


@pytest.mark.usefixtures("nothing_decided")
def test_without_a_compiler_the_other_form_plays(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with caplog.at_level(logging.WARNING):
        assert not calls.kernel_is_used("auto")
        assert not calls.kernel_is_used("auto")
    assert [record.getMessage() for record in caplog.records] == [
        "HackMatrix is played by its JAX form, which is slower: a C++ compiler is not found"
    ]


@pytest.mark.usefixtures("nothing_decided")
def test_who_insists_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv(calls.VARIABLE, "kernel")
    with pytest.raises(UsageError, match=r"OPERANT_HACKMATRIX_FORM: no kernel, since a C\+\+ compiler is not found"):
        calls.kernel_is_used("auto")


@pytest.mark.usefixtures("nothing_decided")
def test_the_variable_chooses_and_nonsense_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(calls.VARIABLE, "jax")
    assert not calls.kernel_is_used("auto")
    calls.kernel_is_used.cache_clear()
    monkeypatch.setenv(calls.VARIABLE, "cuda")
    with pytest.raises(UsageError, match="'cuda' is no form of the game"):
        calls.kernel_is_used("auto")


def test_a_compiler_that_fails_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "kernels.cc:1: error: no" >&2\nexit 1\n')
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(build.NoKernelError, match=r"broken fails: kernels.cc:1: error: no"):
        build.library()
    assert list((tmp_path / "cache/operant/kernels").iterdir()) == []


@needs_compiler
def test_a_library_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    path = build.library()
    monkeypatch.setattr(build, "_compile", lambda *given: pytest.fail("it is there already"))
    assert build.library() == path
