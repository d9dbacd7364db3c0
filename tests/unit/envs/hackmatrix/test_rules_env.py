"""The compiled game as a functional problem: many at once equal one by one, and states go to and fro."""

from __future__ import annotations

from random import Random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from operant.envs.functional.env import Outcome
from operant.envs.hackmatrix.constants import ACTION_COUNT, OBSERVATION_SIZE, REWARD_PARTS, STEP_LIMIT
from operant.envs.hackmatrix.reference.export import export_state
from operant.envs.hackmatrix.reference.state import Cell, Enemy
from operant.envs.hackmatrix.rules.env import HackMatrixEnv
from operant.envs.hackmatrix.rules.state import GAME_WORDS, HISTORY_SHAPE
from tests.unit.envs.hackmatrix.convert import plain_of, state_of
from tests.unit.envs.hackmatrix.rules_form import ENV, SIDE_BY_SIDE, advance, resetter, step, together
from tests.unit.envs.hackmatrix.starts import random_state, random_steps


@pytest.mark.parametrize("seed", range(5))
def test_advance_is_step_and_reset(seed: int) -> None:
    rng = Random(seed)
    states = together([state_of(random_state(rng), (seed, k), 9, random_steps(rng)) for k in range(SIDE_BY_SIDE)])
    actions = [rng.randrange(6) for _ in range(SIDE_BY_SIDE)]
    keys = jax.random.split(jax.random.key(seed), SIDE_BY_SIDE)
    alone, many = step(states, actions), advance(states, actions, keys)
    assert jax.tree.all(jax.tree.map(np.array_equal, alone.outcome, many.outcome))
    over = alone.outcome.terminated | alone.outcome.truncated
    fresh, first = jax.tree.map(np.asarray, resetter()(jax.vmap(jax.random.split)(keys)[:, 1]))
    assert 0 < over.sum() < SIDE_BY_SIDE
    assert np.array_equal(many.states.words, np.where(over[:, None], fresh.words, alone.states.words))
    assert np.array_equal(many.seen, np.where(over[:, None], first, alone.seen))
    assert np.array_equal(many.states.history[~over], alone.states.history[~over])


def test_time_runs_out_on_the_step_that_completes_a_stage() -> None:
    rng = Random(0)
    state = random_state(rng)
    state.player.at, state.exit, state.stage = 34, 35, 3
    state.cells = [Cell()] * 35 + [Cell("exit")]
    state.enemies, state.transmissions = [], []
    states = together([state_of(state, (1, k), 5, STEP_LIMIT - 1) for k in range(SIDE_BY_SIDE)])
    keys = jax.random.split(jax.random.key(3), SIDE_BY_SIDE)
    alone, many = step(states, [3] * SIDE_BY_SIDE), advance(states, [3] * SIDE_BY_SIDE, keys)
    assert many.outcome.truncated.all()
    assert (many.outcome.metrics["stats/highest_stage"] == 4).all()
    assert {(float(stage), float(won)) for stage, won in told(many.outcome)} == {(4.0, 0.0)}
    assert np.array_equal(alone.outcome.observation, many.outcome.observation)
    assert {plain_of(words).stage for words in many.states.words} == {1}


def test_a_won_game_is_told_as_such() -> None:
    state = random_state(Random(0))
    state.player.at, state.exit, state.stage = 34, 35, 8
    state.cells = [Cell()] * 35 + [Cell("exit")]
    state.enemies, state.transmissions = [], []
    states = together([state_of(state, (1, k), 5, 40) for k in range(SIDE_BY_SIDE)])
    keys = jax.random.split(jax.random.key(3), SIDE_BY_SIDE)
    right_or_down = [3 if k % 2 else 1 for k in range(SIDE_BY_SIDE)]
    found = told(advance(states, right_or_down, keys).outcome)
    assert {(float(stage), float(won)) for stage, won in found[1::2]} == {(8.0, 1.0)}
    assert {(float(stage), float(won)) for stage, won in found[::2]} == {(8.0, 0.0)}


def told(outcome: Outcome) -> list[tuple[np.ndarray, np.ndarray]]:
    """Stage and victory of every game."""
    return list(zip(np.asarray(outcome.facts["stage"]), np.asarray(outcome.facts["won"]), strict=True))


def test_states_go_to_and_fro() -> None:
    for seed in range(200):
        plain = random_state(Random(seed))
        assert export_state(plain_of(state_of(plain, (0, 1), 1).words)) == export_state(plain)


def test_what_does_not_fit_is_refused() -> None:
    plain = random_state(Random(0))
    plain.enemies = [Enemy(0, 3, hp=500)]
    with pytest.raises(ValueError, match="200 HP"):
        state_of(plain, (0, 1), 1)
    plain.enemies, plain.cells[0] = [], Cell(credits=300)
    with pytest.raises(ValueError, match="up to 255"):
        state_of(plain, (0, 1), 1)


def test_what_a_learner_needs_to_know() -> None:
    state, seen = jax.eval_shape(ENV.reset, jax.random.key(0))
    assert (state.words.shape, state.history.shape) == ((GAME_WORDS,), HISTORY_SHAPE)
    assert seen.shape == ENV.observation_shape == (OBSERVATION_SIZE,)
    assert jax.eval_shape(ENV.mask, state).shape == (ENV.actions.n,) == (ACTION_COUNT,)
    _, outcome = jax.eval_shape(ENV.step, state, jnp.int32(0), jax.random.key(0))
    parts = {f"reward/{name}" for name in REWARD_PARTS}
    shares = {f"actions/{kind}_frac" for kind in ("move", "siphon", "program")}
    assert set(outcome.metrics) == parts | shares | {"stats/highest_stage"}
    assert ENV.reductions == {"stats/highest_stage": "max"}
    assert tuple(outcome.facts) == ENV.facts == ("stage", "won")
    assert (ENV, hash(ENV)) == (HackMatrixEnv(form="jax"), hash(HackMatrixEnv(form="jax")))
    assert HackMatrixEnv(limit=5) != ENV
