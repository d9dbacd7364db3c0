"""One step by the rules, up to the board of a next stage, which is laid out apart because few environments need one."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from operant.envs.hackmatrix.constants import FIRST_INTERVAL, MAX_HP, STAGES
from operant.envs.hackmatrix.rules.enemy_turn import enemy_turn
from operant.envs.hackmatrix.rules.player_turn import carry_out
from operant.envs.hackmatrix.rules.rewards import Turn, came_nearer, reward_parts
from operant.envs.hackmatrix.rules.state import Game


class Report(NamedTuple):
    """What a step came to. `next_stage` says that a new board is to be laid out, `remembers` that a turn was saved."""

    parts: dict[str, Array]
    legal: Array
    died: Array
    won: Array
    next_stage: Array
    remembers: Array

    @property
    def done(self) -> Array:
        return ~self.legal | self.died | self.won


def play(game: Game, recalled: Array, action: Array) -> tuple[Game, Report]:
    """Carry out an action and let the enemies answer; `recalled` are the words of the newest snapshot."""
    before, stage = game.scene, game.stage
    game, deed = carry_out(game, recalled, action)
    game, acted = enemy_turn(game, deed.ends_turn)
    scene = game.scene._replace(hp=jnp.minimum(game.scene.hp + deed.reached_exit, MAX_HP))
    died = deed.legal & (scene.hp == 0)
    won = deed.reached_exit & (stage == STAGES)
    turn = Turn(before, scene, deed, acted, stage, won, died)
    parts = reward_parts(turn, came_nearer(game, before, deed, died))
    next_stage = deed.reached_exit & ~won
    game = game._replace(
        scene=scene,
        stage=stage + next_stage,
        interval=jnp.where(next_stage, FIRST_INTERVAL - stage, game.interval),
        steps=game.steps + 1,
        source=game.source.after(),
    )
    return game, Report(parts, deed.legal, died, won, next_stage, acted)
