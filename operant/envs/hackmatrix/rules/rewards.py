"""The fifteen parts of the reward."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from operant.envs.hackmatrix.constants import (
    DEATH_SHARE,
    DISTANCE_PAY,
    FINAL_STAGE_PAY,
    HOLDING_PAY,
    KILL_PAY,
    PICKUP_PAY,
    QUALITY_SHARE,
    RESOURCE_PAY,
    REWARD_PARTS,
    SCORE_PAY,
    SIPHON_DEATH_PAY,
    STAGE_PAY,
    STAGES,
    STEP_PENALTY,
    VICTORY_PAY,
    VICTORY_SCORE_PAY,
    WASTE_PAY,
)  # fmt: skip
from operant.envs.hackmatrix.rules.bits import Board, manhattan
from operant.envs.hackmatrix.rules.lists import read_enemies
from operant.envs.hackmatrix.rules.paths import distance
from operant.envs.hackmatrix.rules.player_turn import Deed
from operant.envs.hackmatrix.rules.state import Game, Scene


class Turn(NamedTuple):
    """What a step came to: the scenes before and after it, and what happened between."""

    before: Scene
    after: Scene
    deed: Deed
    enemies_acted: Array
    stage: Array  # the one in which the action was taken
    won: Array
    died: Array


def reward_parts(turn: Turn, nearer: Array) -> dict[str, Array]:
    """Each part by its name, all 0 for a refused action; `nearer` is by how much the exit came nearer."""
    before, after, deed = turn.before, turn.after, turn.deed
    healed = after.hp - before.hp
    wealth = after.credits + after.energy
    siphon_death = turn.died & turn.enemies_acted & siphon_enemy_adjacent(after)
    values = (
        jnp.full(healed.shape, STEP_PENALTY),
        jnp.where(deed.reached_exit, _stage_pay(turn.stage), 0.0),
        SCORE_PAY * (after.score - before.score),
        KILL_PAY * deed.kills,
        PICKUP_PAY * deed.picked_up,
        DISTANCE_PAY * jnp.maximum(nearer, 0),
        jnp.minimum(healed, 0),
        jnp.maximum(healed, 0),
        jnp.where(turn.won, VICTORY_PAY + VICTORY_SCORE_PAY * after.score, 0.0),
        jnp.where(turn.died, DEATH_SHARE * ((1 << turn.stage - 1) - 1), 0.0),
        jnp.where(siphon_death, SIPHON_DEATH_PAY, 0.0),
        RESOURCE_PAY * (wealth - before.credits - before.energy),
        jnp.where(deed.reached_exit, HOLDING_PAY * wealth, 0.0),
        jnp.where(deed.wasted, WASTE_PAY, 0.0),
        QUALITY_SHARE * RESOURCE_PAY * (deed.missed_credits + deed.missed_energy),
    )
    return {
        name: jnp.where(deed.legal, value, 0.0).astype(jnp.float32)
        for name, value in zip(REWARD_PARTS, values, strict=True)
    }


def came_nearer(game: Game, before: Scene, deed: Deed, died: Array) -> Array:
    """By how many steps the exit position came nearer; all of them when it was reached, none in death."""
    after = game.scene
    starts = jnp.stack([before.at, after.at])
    blocks = Board(*(jnp.stack(pair) for pair in zip(before.blocks, after.blocks, strict=True)))
    old, new = distance(starts, jnp.stack([game.exit, game.exit]), blocks)
    return jnp.where(died, 0, jnp.where(deed.reached_exit, old, old - new))


def siphon_enemy_adjacent(scene: Scene) -> Array:
    """Whether an enemy that siphoning has called stands beside the player."""
    enemies = read_enemies(scene.enemies)
    return (enemies.alive & enemies.from_siphon & (manhattan(enemies.at, scene.at) == 1)).any(0)


def _stage_pay(stage: Array) -> Array:
    """Twice as much for every stage; the last pays what the one before it pays."""
    return (1 << jnp.minimum(stage, STAGES - 1) - 1).astype(jnp.float32)


assert (*STAGE_PAY[:-1], FINAL_STAGE_PAY) == (*(1 << stage for stage in range(STAGES - 1)), 1 << STAGES - 2)
