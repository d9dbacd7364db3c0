"""Many games stepped without observations and without resets: what a planner simulates."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from operant.envs.hackmatrix.constants import MAX_HISTORY, STEP_LIMIT
from operant.envs.hackmatrix.rules.draws import Source
from operant.envs.hackmatrix.rules.fusing import settled
from operant.envs.hackmatrix.rules.stages import lay_out, new_games
from operant.envs.hackmatrix.rules.state import HISTORY_SHAPE, SOURCE_ROWS, State, pack, snapshot, unpack
from operant.envs.hackmatrix.rules.step import play

SHARE = 16  # one game in so many gets its next board in one round
FEWEST = 8


class Stepped(NamedTuple):
    """What one step of each game [N] came to. `stage` is the stage the game is in after it."""

    reward: Array
    terminated: Array
    truncated: Array
    won: Array
    stage: Array

    @property
    def over(self) -> Array:
        return self.terminated | self.truncated


def new_states(seeds: Array) -> State:
    """The games that seeds [N] below 2**32 name, as in every other form of the game."""
    zeros = jnp.zeros(seeds.shape, jnp.uint32)
    words = settled(new_games(Source(zeros, seeds.astype(jnp.uint32), zeros)))
    return State(settled(pack(lay_out(unpack(words)))).T, jnp.zeros((len(seeds), *HISTORY_SHAPE), jnp.uint32))


def step_games(states: State, actions: Array) -> tuple[State, Stepped]:
    """One step of each game [N], the next board included where a stage was completed."""
    number = jnp.arange(actions.shape[0])
    game = unpack(states.words.T)
    game, report = play(game, states.history[number, game.newest].T, actions)
    words = settled(pack(game))
    row = jnp.where(report.remembers, game.newest, MAX_HISTORY)
    history = states.history.at[number, row].set(snapshot(words).T, mode="drop")
    reward = sum(report.parts.values(), start=jnp.float32(0))
    truncated = (game.steps >= STEP_LIMIT) & ~report.done
    stepped = Stepped(reward, report.done, truncated, report.won, game.stage)
    return State(_with_next_boards(words.T, report.next_stage), history), stepped


def with_source(states: State, high: Array, low: Array) -> State:
    """The same games [N] with keys of these words for all draws to come: nothing of their own future is left."""
    words = states.words
    for row, value in zip(SOURCE_ROWS, (high, low, jnp.ones_like(high)), strict=True):
        words = words.at[:, row].set(value)
    return states._replace(words=words)


def _with_next_boards(words: Array, wanted: Array) -> Array:
    """Lay out the next board of the games that want one, in rounds of a fixed size."""
    number = wanted.shape[0]
    size = min(number, max(FEWEST, number // SHARE))
    queue = jnp.concatenate([jnp.argsort(~wanted, stable=True), jnp.zeros(size, jnp.int32)])
    total = wanted.sum(dtype=jnp.int32)

    def one(turn: Array, words: Array) -> Array:
        waiting = turn * size + jnp.arange(size) < total
        game = lax.dynamic_slice_in_dim(queue, turn * size, size)
        fresh = settled(pack(lay_out(unpack(settled(words[game].T)))))
        return words.at[jnp.where(waiting, game, number)].set(fresh.T, mode="drop")

    return lax.fori_loop(0, (total + size - 1) // size, one, words)
