"""The scripted policy and the planner: legal actions, fresh draws, the walk through one exit again and again."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from operant.envs.hackmatrix.constants import FIRST_PROGRAM, UNDO
from operant.envs.hackmatrix.players.planner import Planning, plan
from operant.envs.hackmatrix.players.scripted import DEFAULT, scripted_actions
from operant.envs.hackmatrix.reference.game import Game
from operant.envs.hackmatrix.rules.legality import action_mask
from operant.envs.hackmatrix.rules.simulation import new_states, step_games, with_source
from operant.envs.hackmatrix.rules.state import State, unpack

GAMES, STEPS = 64, 120
FIRST_SEED = 300


@lru_cache(maxsize=1)
def played() -> dict[str, np.ndarray]:
    """Games of the script, one array [STEPS, GAMES] a name; what follows the end of a game means nothing."""

    def one(states: State, _: Any) -> tuple[State, dict[str, Any]]:
        actions = scripted_actions(states)
        mask = action_mask(unpack(states.words.T))
        after, stepped = step_games(states, actions)
        legal = jnp.take_along_axis(mask, actions[None], 0)[0]
        return after, {"actions": actions, "legal": legal, **stepped._asdict()}

    seeds = jnp.arange(FIRST_SEED, FIRST_SEED + GAMES)
    return jax.device_get(jax.jit(lambda: jax.lax.scan(one, new_states(seeds), None, STEPS)[1])())


def ends() -> list[int]:
    """By game: how many steps it lasted, at most STEPS."""
    over = played()["terminated"] | played()["truncated"]
    return [int(column.argmax()) + 1 if column.any() else STEPS for column in over.T]


@pytest.mark.slow
def test_the_script_plays_legal_actions_only() -> None:
    game = played()
    assert all(game["legal"][:end, index].all() for index, end in enumerate(ends()))


@pytest.mark.slow
def test_simulated_games_are_those_of_the_reference() -> None:
    found = played()
    for index, end in enumerate(ends()[:16]):
        game = Game(FIRST_SEED + index)
        outcomes = [game.step(int(action)) for action in found["actions"][:end, index]]
        assert [outcome.won for outcome in outcomes] == found["won"][:end, index].tolist()
        assert game.state.stage == found["stage"][end - 1, index]
        assert sum(one.reward for one in outcomes) == pytest.approx(found["reward"][:end, index].sum(), abs=0.05)


@pytest.mark.slow
def test_the_script_wins_and_does_so_by_taking_the_walk_to_an_exit_back() -> None:
    found, lasted = played(), ends()
    winners = [index for index, end in enumerate(lasted) if found["won"][:end, index].any()]
    undone = [(found["actions"][: lasted[index], index] == FIRST_PROGRAM + UNDO).any() for index in winners]
    assert len(winners) >= GAMES // 10  # of 64 games a learner of a billion frames wins none
    assert np.mean(undone) > 0.5


@pytest.mark.slow
def test_a_plan_does_not_depend_on_what_chance_would_bring() -> None:
    states = new_states(jnp.arange(4))
    planning = Planning(candidates=4, rollouts=1, horizon=2)

    @jax.jit
    def planned(states: State, key: Any) -> Any:
        return plan(states, scripted_actions(states, DEFAULT), key, planning)

    words = jnp.arange(4, dtype=jnp.uint32)
    other = with_source(states, words + 7, words + 9)
    found, again = planned(states, jax.random.key(0)), planned(other, jax.random.key(0))
    assert (np.asarray(states.words) != np.asarray(other.words)).any()
    np.testing.assert_array_equal(found, again)
    assert not np.array_equal(found[1], planned(states, jax.random.key(1))[1])  # the planner's own key does matter
