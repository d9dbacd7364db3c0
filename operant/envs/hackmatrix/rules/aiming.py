"""What an action is about to do: who is in the way of a direction, and whether it can be carried out."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from operant.envs.hackmatrix.constants import FIRST_PROGRAM, SIPHON, SIZE, WAIT
from operant.envs.hackmatrix.rules.bits import STEPS, holds, is_on_board
from operant.envs.hackmatrix.rules.fusing import settled
from operant.envs.hackmatrix.rules.legality import Facts, programs_that_run
from operant.envs.hackmatrix.rules.lists import field, flag, shifted
from operant.envs.hackmatrix.rules.state import Game, Scene

NOWHERE = -1


class Aim(NamedTuple):
    """Where a direction leads: to the first target in line (NOWHERE if none), and to the cell next to the player."""

    target: Array
    is_transmission: Array
    ahead: Array
    is_free: Array


class Act(NamedTuple):
    """An action and whether it is carried out; a refused one does nothing at all."""

    action: Array
    legal: Array
    aim: Aim

    def runs(self, program: int) -> Array:
        """Whether this is that program."""
        return self.legal & (self.action == FIRST_PROGRAM + program)

    def runs_any(self, *programs: int) -> Array:
        """Whether this is one of those programs."""
        flags = [self.runs(program) for program in programs]
        return jnp.stack(flags).any(0)

    @property
    def strikes(self) -> Array:
        """Whether the player hits somebody in line."""
        return self.legal & (self.action < SIPHON) & (self.aim.target != NOWHERE)

    @property
    def walks(self) -> Array:
        return self.legal & (self.action < SIPHON) & (self.aim.target == NOWHERE)

    @property
    def siphons(self) -> Array:
        return self.legal & (self.action == SIPHON)

    @property
    def ends_turn(self) -> Array:
        return self.legal & ((self.action <= SIPHON) | (self.action == FIRST_PROGRAM + WAIT))


def consider(game: Game, facts: Facts, action: Array) -> Act:
    """The action, tested by itself: the mask is not consulted."""
    aim = take_aim(game.scene, facts, action)
    program = jnp.maximum(action - FIRST_PROGRAM, 0).astype(jnp.uint32)
    can_run = (programs_that_run(game, facts) >> program) & 1 != 0
    can_go = (aim.target != NOWHERE) | aim.is_free
    legal = jnp.where(action < SIPHON, can_go, jnp.where(action == SIPHON, game.scene.siphons > 0, can_run))
    return _settled(Act(action, legal, aim))


def _settled(act: Act) -> Act:
    """The same act, once and for all in one word that every pass can read."""
    aim = act.aim
    flags = shifted(act.legal, 5) | shifted(aim.is_transmission, 6) | shifted(aim.is_free, 7)
    word = settled(shifted(act.action, 0) | flags | shifted(aim.target + 1, 8) | shifted(aim.ahead + 16, 16))
    aim = Aim(field(word, 8, 8) - 1, flag(word, 6), field(word, 16, 8) - 16, flag(word, 7))
    return Act(field(word, 0, 5), flag(word, 5), aim)


def take_aim(scene: Scene, facts: Facts, action: Array) -> Aim:
    """Scan outward from the player, cell by cell, until a target, a block or the edge."""
    up, down, left, right = STEPS
    vertical = jnp.where(action == 0, up, down)
    step = jnp.where(action < 2, vertical, jnp.where(action == 2, left, right))
    target = jnp.full_like(action, NOWHERE)
    clear = jnp.ones_like(scene.show)
    for reach in range(1, SIZE):
        square = scene.at + reach * step
        clear = clear & is_on_board(square)
        found = holds(facts.transmissions_at | facts.enemies_at, square)
        target = jnp.where(clear & found, square, target)
        clear = clear & ~found & ~holds(scene.blocks, square)
    ahead = scene.at + step
    is_free = is_on_board(ahead) & ~holds(scene.blocks, ahead)
    return Aim(target, holds(facts.transmissions_at, target), ahead, is_free)
