"""HackMatrix as a functional problem: reset, step, mask, and many games at once with automatic reset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array, lax

from operant.envs.functional.env import Discrete, FunctionalEnv, Outcome, Reduction, unnamed
from operant.envs.hackmatrix.constants import (
    ACTION_COUNT,
    MAX_HISTORY,
    OBSERVATION_SIZE,
    SIPHON,
    STEP_LIMIT,
)
from operant.envs.hackmatrix.kernel import calls
from operant.envs.hackmatrix.kernel.calls import Stepped, kernel_is_used
from operant.envs.hackmatrix.rules.draws import Source
from operant.envs.hackmatrix.rules.fusing import settled
from operant.envs.hackmatrix.rules.legality import action_mask
from operant.envs.hackmatrix.rules.observation import observe
from operant.envs.hackmatrix.rules.resets import Renewal, renew
from operant.envs.hackmatrix.rules.stages import lay_out, new_games
from operant.envs.hackmatrix.rules.state import HISTORY_SHAPE, Game, State, pack, snapshot, unpack
from operant.envs.hackmatrix.rules.step import Report, play


@dataclass(frozen=True)
class HackMatrixEnv(FunctionalEnv):
    """The grid hacking game. The random source is in the state, so `step` needs no key.

    The observation is flat: 10 numbers of the player, 23 programs, then 36 cells in row-major order
    with 42 channels each.
    """

    name: str = "HackMatrix-v0"
    limit: int = STEP_LIMIT
    form: str = "auto"  # or "kernel" or "jax": who plays, never what comes of it
    observation_shape: ClassVar[tuple[int, ...]] = (OBSERVATION_SIZE,)
    actions: ClassVar[Discrete] = Discrete(ACTION_COUNT)
    masked: ClassVar[bool] = True
    reductions: ClassVar[Mapping[str, Reduction]] = MappingProxyType({"stats/highest_stage": "max"})
    facts: ClassVar[tuple[str, ...]] = ("stage", "won")

    def reset(self, key: Array) -> tuple[State, Array]:
        source, history = source_of(key), jnp.zeros(HISTORY_SHAPE, jnp.uint32)
        if kernel_is_used(self.form):
            words, seen = calls.reset(jnp.stack([source.high, source.low]))
            return State(words, history), seen
        words = settled(pack(lay_out(unpack(settled(new_games(source))))))
        return State(words, history), observe(unpack(words))

    def observe(self, state: State) -> Array:
        return calls.observe(state.words) if kernel_is_used(self.form) else observe(unpack(state.words))

    def mask(self, state: State) -> Array:
        return calls.mask(state.words) if kernel_is_used(self.form) else action_mask(unpack(state.words))

    def step(self, state: State, action: Array, key: Array | None = None) -> tuple[State, Outcome]:
        del key
        if kernel_is_used(self.form):
            state, stepped = calls.step(state, action, self.limit)
            return state, _outcome_of(stepped, action)
        game = unpack(state.words)
        game, report = play(game, state.history[game.newest], action)
        words = pack(game)
        row = jnp.where(report.remembers, game.newest, MAX_HISTORY)
        history = state.history.at[row].set(snapshot(words), mode="drop")
        words = lax.cond(report.next_stage, lambda: pack(lay_out(unpack(words))), lambda: words)
        return State(words, history), self._outcome(game, report, action, observe(unpack(words)))

    def advance(self, states: State, actions: Array, keys: Array) -> tuple[State, Array, Outcome]:
        fresh_keys = unnamed(jax.vmap(jax.random.split)(keys)[:, 1])
        if kernel_is_used(self.form):
            key_words = jax.random.key_data(fresh_keys)[:, :2]
            states, first, stepped = calls.advance(states, actions, key_words, self.limit)
            return states, first, _outcome_of(stepped, actions)
        number = jnp.arange(actions.shape[0])
        game = unpack(states.words.T)
        game, report = play(game, states.history[number, game.newest].T, actions)
        words = settled(pack(game))
        row = jnp.where(report.remembers, game.newest, MAX_HISTORY)
        history = states.history.at[number, row].set(snapshot(words).T, mode="drop")
        outcome = self._outcome(game, report, actions, observe(unpack(words)))
        over = outcome.terminated | outcome.truncated
        start = Renewal(words.T, outcome.observation, outcome.observation)
        done = renew(start, report.next_stage, over, fresh_keys)
        return State(done.words, history), done.first, outcome._replace(observation=done.final)

    def _outcome(self, game: Game, report: Report, action: Array, observation: Array) -> Outcome:
        terminated = report.done
        truncated = (game.steps >= self.limit) & ~terminated
        reward = sum(report.parts.values(), start=jnp.float32(0))
        numbers = reward, game.stage.astype(jnp.float32), report.won.astype(jnp.float32), report.parts
        return _outcome_of(Stepped(observation, terminated, truncated, *numbers), action)


def _outcome_of(stepped: Stepped, action: Array) -> Outcome:
    """What a step came to, in the words of a functional problem."""
    metrics = {f"reward/{name}": value for name, value in stepped.parts.items()}
    metrics |= {
        "actions/move_frac": (action < SIPHON).astype(jnp.float32),
        "actions/siphon_frac": (action == SIPHON).astype(jnp.float32),
        "actions/program_frac": (action > SIPHON).astype(jnp.float32),
        "stats/highest_stage": stepped.stage,
    }
    facts = {"stage": stepped.stage, "won": stepped.won}
    ends = stepped.terminated, stepped.truncated
    return Outcome(stepped.observation, stepped.reward, *ends, metrics, facts)


def source_of(key: Array) -> Source:
    """The draws of a typed key, from its first event on."""
    high, low = jax.random.key_data(key)[:2]
    return Source(high, low, jnp.zeros_like(high))
