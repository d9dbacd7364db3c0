"""The player's action: walking, siphoning, and what programs do to the player and the board."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from operant.envs.hackmatrix.constants import (
    ATK_PLUS,
    CALM,
    CRASH,
    EXCH,
    EXCH_ENERGY,
    FIRST_PROGRAM,
    MAX_HISTORY,
    MAX_HP,
    MIN_INTERVAL,
    PROGRAMS,
    REDUC,
    RESET,
    SCORE,
    SHOW,
    SIPH_PLUS,
    SIPHON_DELAY,
    STAGES,
    STEP,
    UNDO,
    WARP,
    WASTE_HP,
)  # fmt: skip
from operant.envs.hackmatrix.rules.aiming import Act, consider
from operant.envs.hackmatrix.rules.bits import bit, eight, holds, looked_up, only, per_cell
from operant.envs.hackmatrix.rules.fusing import settled
from operant.envs.hackmatrix.rules.legality import survey
from operant.envs.hackmatrix.rules.lists import RESOURCE_BITS, field, flag, read_cells, shifted, write_cells
from operant.envs.hackmatrix.rules.siphoning import siphon
from operant.envs.hackmatrix.rules.state import Game, Scene, pack_scene, unpack_scene
from operant.envs.hackmatrix.rules.striking import strike


class Deed(NamedTuple):
    """What an action did, as far as the rest of the step and the reward ask."""

    legal: Array
    ends_turn: Array
    kills: Array
    picked_up: Array
    reached_exit: Array
    wasted: Array
    missed_credits: Array
    missed_energy: Array


def carry_out(game: Game, recalled: Array, action: Array) -> tuple[Game, Deed]:
    """Carry out an action, or refuse it and change nothing; `recalled` are the words of the newest snapshot."""
    facts, before = survey(game), game.scene
    act = consider(game, facts, action)
    blow = strike(before, facts, act, game.source)
    haul = siphon(before, act.siphons)
    scene = haul.scene._replace(enemies=blow.enemies, transmissions=blow.transmissions)
    scene, picked_up = _move(scene, act, blow.landing)
    scene = _use_programs(_pay(scene, act), act, game.stage)
    game = _settle(game._replace(scene=scene), act, haul.pending, recalled)
    reached = act.walks & (scene.at == before.gate) | act.runs(WARP) & (scene.at == game.exit)
    wasted = act.runs(RESET) & (before.hp == WASTE_HP)
    missed = haul.missed_credits, haul.missed_energy
    return game, _settled(Deed(act.legal, act.ends_turn & ~reached, blow.kills, picked_up, reached, wasted, *missed))


def _settled(deed: Deed) -> Deed:
    """The same deed, its flags and kills once and for all in one word."""
    flags = (deed.legal, deed.ends_turn, deed.picked_up, deed.reached_exit, deed.wasted)
    word = settled(reduce(or_, (shifted(one, place) for place, one in enumerate(flags))) | shifted(deed.kills, 8))
    legal, ends_turn, picked_up, reached_exit, wasted = (flag(word, place) for place in range(len(flags)))
    missed = deed.missed_credits, deed.missed_energy
    return Deed(legal, ends_turn, field(word, 8, 8), picked_up, reached_exit, wasted, *missed)


def _move(scene: Scene, act: Act, landing: Array) -> tuple[Scene, Array]:
    """Walk a cell and take a pickup there, or warp, which takes nothing."""
    walked = jnp.where(act.walks, act.aim.ahead, scene.at)
    picked_up = act.walks & holds(scene.pickups, walked)
    scene = scene._replace(
        at=jnp.where(act.runs(WARP), landing, walked),
        siphons=scene.siphons + picked_up,
        pickups=scene.pickups - only(picked_up, bit(walked)),
    )
    return scene, picked_up


def _pay(scene: Scene, act: Act) -> Scene:
    program = jnp.maximum(act.action - FIRST_PROGRAM, 0)
    pays = act.legal & (act.action >= FIRST_PROGRAM)
    credit = looked_up(tuple(one.credits for one in PROGRAMS), program)
    energy = looked_up(tuple(one.energy for one in PROGRAMS), program)
    return scene._replace(
        credits=scene.credits - jnp.where(pays, credit, 0),
        energy=scene.energy - jnp.where(pays, energy, 0),
    )


def _use_programs(scene: Scene, act: Act, stage: Array) -> Scene:
    """The programs that change only the player, the flags or the blocks."""
    cells = read_cells(scene.cells)
    unsiphoned = per_cell(scene.blocks - scene.siphoned)
    fewer = jnp.where(act.runs(REDUC) & unsiphoned, 1, 0)
    crashed = only(act.runs(CRASH), eight(scene.at))
    words = write_cells(cells._replace(spawn=jnp.maximum(cells.spawn - fewer, 0)))
    return scene._replace(
        hp=jnp.where(act.runs(RESET), MAX_HP, scene.hp),
        energy=scene.energy + jnp.where(act.runs(EXCH), EXCH_ENERGY, 0),
        siphons=scene.siphons + act.runs(SIPH_PLUS),
        score=scene.score + jnp.where(act.runs(SCORE), STAGES - stage, 0),
        attack=scene.attack + act.runs(ATK_PLUS),
        attack_uses=scene.attack_uses + act.runs(ATK_PLUS),
        show=scene.show | act.runs(SHOW),
        calm=scene.calm | act.runs(CALM),
        blocks=scene.blocks - crashed,
        cells=jnp.where(per_cell(crashed), words & RESOURCE_BITS, words),
    )


def _settle(game: Game, act: Act, pending: Array, recalled: Array) -> Game:
    """What an action changes beyond the scene; and UNDO, which changes the scene altogether."""
    undoes = act.runs(UNDO)
    words = jnp.where(undoes, recalled, pack_scene(game.scene))
    return game._replace(
        scene=unpack_scene(settled(words)),
        skip=game.skip | act.runs(STEP),
        interval=jnp.where(act.siphons, jnp.maximum(game.interval - 1, MIN_INTERVAL), game.interval),
        next_task=game.next_task + jnp.where(act.siphons, SIPHON_DELAY, 0),
        pending=game.pending + pending,
        saved=game.saved - undoes,
        newest=jnp.where(undoes, (game.newest - 1) % MAX_HISTORY, game.newest),
    )
