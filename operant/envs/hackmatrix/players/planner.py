"""A planner: every legal action is tried in simulations, which the scripted policy plays on.

Simulations begin at the true state of the game, hidden facts included, but with keys of their own: what chance
brings is drawn afresh in each, so the planner knows the rules and never the future. Simulations are shared out by
sequential halving (Karnin et al., 2013): each round drops the worse half of the actions and doubles the rest's share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from operant.envs.hackmatrix.constants import FIRST_PROGRAM, STAGES, UNDO
from operant.envs.hackmatrix.players.scripted import DEFAULT, Weights, owns, scripted_actions
from operant.envs.hackmatrix.rules.legality import action_mask
from operant.envs.hackmatrix.rules.simulation import step_games, with_source
from operant.envs.hackmatrix.rules.state import State, unpack

NEVER, SURE = -1e9, 1e9
LEAST_SPREAD = 0.01
HASTE = 0.0005  # what a step costs, so that of two ways to win the shorter one is taken


@dataclass(frozen=True)
class Planning:
    """How much is simulated for one decision.

    `candidates` is a power of two; the first round plays `rollouts` of each of them, `horizon` steps long. `trust` is
    by how many standard errors another action's value must exceed that of the scripted one. `weights` are the script's.
    """

    candidates: int = 8
    rollouts: int = 16
    horizon: int = 64
    trust: float = 1.0
    weights: Weights = DEFAULT

    @property
    def lanes(self) -> int:
        """Simulations of one game that run at once."""
        return self.candidates * self.rollouts

    @property
    def rounds(self) -> int:
        return self.candidates.bit_length() - 1


class ActionValues(NamedTuple):
    """Values of candidates [N, K] so far: sums, sums of squares and numbers of simulations; and candidates in order."""

    total: Array
    squares: Array
    number: Array
    order: Array

    def means(self) -> Array:
        return self.total / jnp.maximum(self.number, 1)

    def errors(self) -> Array:
        """Squared standard errors of the means, as if every value had at least a small spread."""
        number = jnp.maximum(self.number, 1)
        return (jnp.maximum(self.squares / number - self.means() ** 2, 0) + LEAST_SPREAD) / number


class Simulated(NamedTuple):
    """Simulations [N] on their way; `value` is of those that are over."""

    time: Array
    states: State
    over: Array
    value: Array


def plan(states: State, scripted: Array, key: Array, planning: Planning) -> tuple[Array, Array]:
    """The best action of each game [N] by simulation, and its value.

    `scripted` are the actions of the scripted policy, which others have to beat. `key` is the planner's own; the
    games' keys are not looked at.
    """
    games, lanes = states.words.shape[0], planning.lanes
    to_candidates, to_rounds = jax.random.split(key)
    candidates, legal = _candidates(states, scripted, to_candidates, planning)
    is_scripted = candidates == scripted[:, None]

    def one(number: Array, values_so_far: ActionValues) -> ActionValues:
        left = planning.candidates >> number
        share = lanes // left
        lane = jnp.arange(lanes)
        chosen = values_so_far.order[:, lane // share]  # [N, lanes]
        words = jax.random.bits(jax.random.fold_in(to_rounds, number), (2, games, lanes), jnp.uint32)
        words = words[:, :, lane % share]  # the same draws for every candidate
        actions = jnp.take_along_axis(candidates, chosen, 1)
        values = rollout_values(states, actions, words, planning)
        which = jax.nn.one_hot(chosen, planning.candidates)
        values_so_far = ActionValues(
            values_so_far.total + (which * values[..., None]).sum(1),
            values_so_far.squares + (which * values[..., None] ** 2).sum(1),
            values_so_far.number + which.sum(1),
            values_so_far.order,
        )
        surviving = (jnp.arange(planning.candidates) < left)[values_so_far.order.argsort(1)]
        scores = jnp.where(legal & surviving, values_so_far.means(), NEVER)
        scores = jnp.where(is_scripted, SURE, scores)  # stays to the end, to be compared with
        return values_so_far._replace(order=(-scores).argsort(1))

    zeros = jnp.zeros(candidates.shape)
    start = ActionValues(zeros, zeros, zeros, jnp.broadcast_to(jnp.arange(planning.candidates), candidates.shape))
    values_so_far = lax.fori_loop(0, planning.rounds, one, start)
    old, new = values_so_far.order[:, 0], values_so_far.order[:, 1]
    return _the_better(values_so_far, candidates, legal, (old, new), planning.trust)


def _the_better(
    values_so_far: ActionValues, candidates: Array, legal: Array, finalists: tuple[Array, Array], trust: float
) -> tuple[Array, Array]:
    """The second finalist where it is surely better than the first, the scripted action; and the value of that."""

    def of(array: Array, which: Array) -> Array:
        return jnp.take_along_axis(array, which[:, None], 1)[:, 0]

    old, new = finalists
    means, errors = values_so_far.means(), values_so_far.errors()
    gain = of(means, new) - of(means, old)
    better = of(legal, new) & (gain > trust * jnp.sqrt(of(errors, new) + of(errors, old)))
    chosen = jnp.where(better, new, old)
    return of(candidates, chosen), of(means, chosen)


def rollout_values(states: State, actions: Array, words: Array, planning: Planning) -> Array:
    """The value [N, L] of actions [N, L], one simulation each, in which keys are the words [2, N, L]."""
    games, lanes = actions.shape
    copies = jax.tree.map(lambda array: jnp.repeat(array, lanes, 0), states)
    high, low = words.reshape(2, -1)
    copies = with_source(copies, high, low)
    actions = actions.reshape(-1)
    start = Simulated(jnp.int32(0), copies, jnp.zeros(actions.shape, bool), jnp.zeros(actions.shape))

    def one(now: Simulated) -> Simulated:
        action = jnp.where(now.time == 0, actions, scripted_actions(now.states, planning.weights))
        states, stepped = step_games(now.states, action)
        value = jnp.where(now.over, now.value, _ended_value(stepped.won, stepped.stage) - HASTE * now.time)
        return Simulated(now.time + 1, states, now.over | stepped.over, value)

    end = lax.while_loop(lambda now: (now.time < planning.horizon) & ~now.over.all(), one, start)
    going_on = standing_value(end.states, planning.weights) - HASTE * end.time
    return jnp.where(end.over, end.value, going_on).reshape(games, lanes)


def standing_value(states: State, weights: Weights) -> Array:
    """What a game that goes on is worth: a rough chance of winning."""
    game = unpack(states.words.T)
    scene = game.scene
    ready = owns(scene, UNDO) & (weights.undo > 0)
    chance = jnp.where(ready, 0.8, 0.35) * (0.4 + 0.2 * scene.hp)
    return chance - 0.01 * game.stage * ~ready


def _ended_value(won: Array, stage: Array) -> Array:
    """1 for a game that is won; one that is lost still counts for the stages it passed, a little."""
    return jnp.where(won, 1.0, 0.05 * (stage - 1) / STAGES)


def _candidates(states: State, scripted: Array, key: Array, planning: Planning) -> tuple[Array, Array]:
    """Actions [N, K] to try and whether each is legal: the scripted one first, then others in random order."""
    mask = action_mask(unpack(states.words.T)).T
    undo = FIRST_PROGRAM + UNDO
    mask = mask.at[:, undo].set(mask[:, undo] & (planning.weights.undo > 0))
    chances = jax.random.uniform(key, mask.shape)
    chances = chances.at[jnp.arange(len(scripted)), scripted].set(2.0)
    _, actions = lax.top_k(jnp.where(mask, chances, -1.0), planning.candidates)
    return actions, jnp.take_along_axis(mask, actions, 1)
