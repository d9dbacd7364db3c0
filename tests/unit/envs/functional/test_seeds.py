"""In one compiled program, too, no training episode begins as one of evaluation does."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from operant.envs.functional.classic import CartPole  # noqa: E402
from operant.envs.functional.env import FunctionalEnv, unnamed  # noqa: E402
from operant.envs.hackmatrix.rules.env import HackMatrixEnv  # noqa: E402

SEEDS = np.array([0, 1, 7, 1_000_000, 2**32 - 1], np.uint32)


def test_the_key_of_a_seed_is_never_one_of_training():
    named = jax.vmap(jax.random.key)(SEEDS)
    words = jax.random.key_data(unnamed(named))
    assert (words[:, 0] != 0).all()
    others = jax.random.split(jax.random.key(3), 1000)
    assert (jax.random.key_data(unnamed(others)) == jax.random.key_data(others)).all()


@pytest.mark.parametrize("split", [False, True])
def test_a_fresh_episode_is_not_the_one_that_its_key_names(split: bool, monkeypatch: pytest.MonkeyPatch):
    """Every environment is over at once, and is given the very keys that evaluation would begin with."""
    env = CartPole(limit=1)
    named = jax.vmap(jax.random.key)(SEEDS)
    states, evaluated = jax.vmap(env.reset)(named)
    advance = CartPole.advance
    if split:  # as problems do that need chance in their steps too
        monkeypatch.setattr(jax.random, "split", lambda key: jax.numpy.stack([key, key]))
        advance = FunctionalEnv.advance
    _, first, outcome = advance(env, states, jax.numpy.zeros(len(SEEDS), jax.numpy.int32), named)
    assert outcome.truncated.all()
    assert not np.isclose(first, evaluated).all(-1).any()


@pytest.mark.slow  # compiles the game
def test_a_new_game_of_hackmatrix_is_not_the_one_that_its_key_names(monkeypatch: pytest.MonkeyPatch):
    env = HackMatrixEnv(limit=1)
    named = jax.vmap(jax.random.key)(SEEDS)
    states, evaluated = jax.vmap(env.reset)(named)
    monkeypatch.setattr(jax.random, "split", lambda key: jax.numpy.stack([key, key]))
    _, first, outcome = env.advance(states, jax.numpy.zeros(len(SEEDS), jax.numpy.int32), named)
    assert (outcome.terminated | outcome.truncated).all()
    assert not np.isclose(first, evaluated).all(-1).any()
