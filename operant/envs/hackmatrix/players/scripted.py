"""A scripted policy: it plays by rules of thumb, for many games at once, and looks for UNDO, which wins.

UNDO brings back the board of the last turn, its exit included, but not the number of the stage. A player who owns it
and a credit walks through the exit, takes the walk back, walks through the same exit again, and so on to the end of
stage 8. All else serves to stay alive until UNDO is found: shoot what can be shot, avoid cells where
enemies can strike, siphon where programs are worth their enemies.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from operant.envs.hackmatrix.constants import (
    ANTI_V,
    ATK_PLUS,
    CALM,
    COL,
    CRASH,
    D_BOM,
    DEBUG,
    DELAY,
    EXCH,
    FIRST_PROGRAM,
    HACK,
    MAX_HISTORY,
    POLY,
    PROGRAM_COUNT,
    PROGRAMS,
    PUSH,
    REDUC,
    RESET,
    ROW,
    SIPH_PLUS,
    SIPHON,
    STAGES,
    STEP,
    UNDO,
    VIRUS,
    WARP,
)  # fmt: skip
from operant.envs.hackmatrix.rules.aiming import NOWHERE, Aim, take_aim
from operant.envs.hackmatrix.rules.bits import (
    SQUARES,
    STEPS,
    Board,
    bit,
    cell_squares,
    choose,
    count,
    eight,
    full,
    grow,
    is_empty,
    only,
    per_cell,
    union,
)
from operant.envs.hackmatrix.rules.fusing import column, settled
from operant.envs.hackmatrix.rules.legality import Facts, action_mask, survey
from operant.envs.hackmatrix.rules.lists import field, flag, read_cells
from operant.envs.hackmatrix.rules.paths import LONGEST
from operant.envs.hackmatrix.rules.siphoning import over_crosses
from operant.envs.hackmatrix.rules.state import (
    CREDITS_ROW,
    NOTES_ROW,
    OWNED_ROW,
    Game,
    Scene,
    State,
    unpack,
    unpack_scene,
)  # fmt: skip

FAR = 40


class Weights(NamedTuple):
    """What the script holds things to be worth, in steps of walking; numbers, or one for each game."""

    harm: Array | float = 5.0  # of an expected loss of a hit point
    near: Array | float = 0.45  # of an enemy within two cells
    kill: Array | float = 3.5
    hit: Array | float = 1.45
    signal: Array | float = 2.3  # of shooting a transmission
    undo: Array | float = 90.0  # 0: never used
    attack: Array | float = 7.5
    program: Array | float = 5.6
    credit: Array | float = 0.5
    energy: Array | float = 0.8
    points: Array | float = 0.0
    spawn: Array | float = 3.0  # of an enemy that a siphon calls
    siphon_at: Array | float = 2.7  # least worth of a place to siphon
    walk: Array | float = 0.45  # of a step to a place to siphon
    detour: Array | float = 13.0  # most steps beyond the shortest way for a pickup, in stage 1
    detour_stage: Array | float = 0.85  # fewer, for every stage
    wavering: Array | float = 1.0  # most that chance adds to an action


DEFAULT = Weights()
PROGRAM_WORTH = {  # by program, in the same steps; UNDO and ATK+ have weights of their own
    RESET: 12, STEP: 8, CRASH: 6, WARP: 5, CALM: 4, ROW: 5, COL: 5, PUSH: 4, HACK: 4, D_BOM: 4,
    SIPH_PLUS: 4, DELAY: 3, ANTI_V: 3, REDUC: 2, EXCH: 2, DEBUG: 1, POLY: 1,
}  # fmt: skip
WORTH_SCALE = 5.0
HIDDEN_WORTH, HIDDEN_SPAWN = 1.0, 4.5  # of a question block, whose content is not seen


class Prospect(NamedTuple):
    """Where the game leads: the goal to walk to, and whether it is a place to siphon; `gain` is what that is worth."""

    goal: Board
    siphons_here: Array
    wants_siphon: Array
    gain: Array


class Option(NamedTuple):
    """One of the actions that end a turn: what it is worth, and the hit points it may cost."""

    worth: Array
    harm: Array


def scripted_actions(states: State, weights: Weights = DEFAULT) -> Array:
    """A legal action for each game [N]."""
    game = unpack(states.words.T)
    number = jnp.arange(states.words.shape[0])
    recalled = unpack_scene(settled(states.history[number, game.newest].T))
    mask, facts = settled(action_mask(game)), survey(game)
    mask = mask.at[FIRST_PROGRAM + UNDO].set(mask[FIRST_PROGRAM + UNDO] & (weights.undo > 0))
    prospect = look_out(game, facts, weights)
    options = weigh_options(game, facts, prospect, weights)
    wavering = weights.wavering * _unsettled(game, len(options))
    worth = jnp.stack([option.worth for option in options]) + wavering
    worth = jnp.where(mask[: SIPHON + 1], worth, -jnp.inf)
    action = worth.argmax(0).astype(jnp.int32)
    harm = jnp.take_along_axis(jnp.stack([option.harm for option in options]), action[None], 0)[0]
    action = _use_programs(game, facts, mask, prospect, action, harm)
    again = mask[FIRST_PROGRAM + UNDO] & (takes_walk_back(game, recalled) | was_healthier(game, states.history))
    return jnp.where(again, FIRST_PROGRAM + UNDO, action).astype(jnp.int32)


def _unsettled(game: Game, number: int) -> Array:
    """Numbers from 0 to 1 that differ from step to step, so that UNDO does not lead into the same turn for ever."""
    word = game.steps.astype(jnp.uint32) * 8 + column(range(number), game.steps).astype(jnp.uint32)
    for factor in (0x7FEB352D, 0x846CA68B):
        word = (word ^ word >> 15) * jnp.uint32(factor)
    return (word >> 8).astype(jnp.float32) / (1 << 24)


def owns(scene: Scene, program: int) -> Array:
    """Whether the player has a program."""
    return (scene.owned >> program) & 1 != 0


def takes_walk_back(game: Game, recalled: Scene) -> Array:
    """Whether UNDO leads from a board on which no turn has passed to the exit of the board before."""
    lasts = owns(recalled, UNDO) & (recalled.credits >= 1) | (game.stage == STAGES)
    return (game.scene.turn == 0) & (game.saved > 0) & lasts


def was_healthier(game: Game, history: Array) -> Array:
    """Whether the player is about to die and a snapshot [N, 8] is of a time when they were not, UNDO already theirs."""
    age = (game.newest[:, None] - jnp.arange(MAX_HISTORY)) % MAX_HISTORY
    healthy = field(history[:, :, NOTES_ROW], 6, 2) > 1
    lasts = flag(history[:, :, OWNED_ROW], UNDO) & (history[:, :, CREDITS_ROW] >= 1)
    return (game.scene.hp == 1) & ((age < game.saved[:, None]) & healthy & lasts).any(1)


def look_out(game: Game, facts: Facts, weights: Weights) -> Prospect:
    """Choose where to go: a place to siphon, a pickup, or the exit."""
    scene = game.scene
    squares, gate = cell_squares(scene.at), bit(scene.gate)
    inner = full() - scene.blocks - gate
    walked = settled(_steps_from(bit(scene.at), inner | gate, inner))
    left = settled(_steps_from(gate, inner | bit(scene.at), full()))
    worth = jnp.where(per_cell(inner) & (walked < FAR), _siphon_worth(game, facts, weights), -1e3)
    worth = _settled(worth - weights.walk * walked)
    gain, best = worth.max(0), worth.argmax(0)
    ready = owns(scene, UNDO) & (scene.credits >= 1) & (weights.undo > 0)
    wants_siphon = (scene.siphons > 0) & (gain > weights.siphon_at) & ~ready
    way_out = jnp.where(squares == scene.gate, walked, 0).max(0)
    detour = jnp.where(per_cell(scene.pickups), walked + left - way_out, FAR)
    nearest = detour.argmin(0)
    most = weights.detour - weights.detour_stage * game.stage + jnp.clip(gain * 0.3, 0, 12)
    wants_pickup = (detour.min(0) <= most) & ~ready
    place, pickup = _square(best), _square(nearest)
    goal = choose(wants_siphon, bit(place), choose(wants_pickup, bit(pickup), gate))
    return Prospect(goal, wants_siphon & (place == scene.at), wants_siphon, gain)


def _square(cell: Array) -> Array:
    return (8 * (cell // 6) + cell % 6).astype(jnp.int32)


def _steps_from(start: Board, within: Board, through: Board) -> Array:
    """By cell: steps from a set over cells `within`, of which only those in `through` are passed; FAR if no way."""
    reached, steps = start, jnp.zeros((len(SQUARES), *start.low.shape), jnp.int32)
    for _ in range(LONGEST):
        steps = steps + ~per_cell(reached)
        reached = reached | grow((reached & through) | start, within)
    return jnp.where(per_cell(reached), steps, FAR)


def _siphon_worth(game: Game, facts: Facts, weights: Weights) -> Array:
    """By cell: what a siphon there is worth, the enemies that it calls deducted."""
    scene = game.scene
    cells = read_cells(scene.cells)
    fresh, walls = ~per_cell(scene.siphoned), per_cell(scene.blocks)
    table = [PROGRAM_WORTH.get(program, 0) / WORTH_SCALE * weights.program for program in range(PROGRAM_COUNT)]
    table[UNDO], table[ATK_PLUS] = weights.undo, weights.attack
    program = sum(
        (jnp.where((cells.value == p) & ~owns(scene, p), worth, 0.0) for p, worth in enumerate(table)),
        start=jnp.float32(0),
    )
    known = jnp.where(cells.is_program, program, weights.points * cells.value)
    crowd = facts.enemy_count + facts.transmission_count
    cost = weights.spawn * (1 + 0.15 * crowd)
    block = jnp.where(cells.question, HIDDEN_WORTH - cost * HIDDEN_SPAWN, known - cost * cells.spawn)
    poor = owns(scene, UNDO) & (scene.credits == 0) & (weights.undo > 0)
    credit = jnp.where(poor, 20.0, weights.credit)
    resource = cells.amount * jnp.where(cells.is_energy, weights.energy, credit)
    return over_crosses(_settled(jnp.where(fresh, jnp.where(walls, block, resource), 0.0)), jnp.add)


def _settled(numbers: Array) -> Array:
    """Real numbers computed once."""
    words = lax.bitcast_convert_type(numbers.astype(jnp.float32), jnp.uint32)
    return lax.bitcast_convert_type(settled(words), jnp.float32)


def weigh_options(game: Game, facts: Facts, prospect: Prospect, weights: Weights) -> list[Option]:
    """The four directions and the siphon."""
    scene = game.scene
    aims = [take_aim(scene, facts, jnp.full_like(scene.at, way)) for way in range(len(STEPS))]
    places = jnp.stack([aim.ahead for aim in aims] + [scene.at])
    way_left = settled(_steps_to(prospect.goal, scene, places))
    stay = way_left[-1]
    options = [_direction(game, facts, prospect, aim, way_left[way], stay, weights) for way, aim in enumerate(aims)]
    harm, near = _threats(scene, facts, scene.at, only(jnp.zeros_like(scene.show), full()))
    siphoning = jnp.where(prospect.siphons_here, 3 + 0.2 * prospect.gain, -50.0)
    return [*options, Option(siphoning - _cost(scene, harm, near, weights), harm)]


def _steps_to(goal: Board, scene: Scene, places: Array) -> Array:
    """Steps from places to a goal; the exit is passed only if it is the goal."""
    within = (full() - scene.blocks - bit(scene.gate)) | goal
    here = bit(places)
    reached = goal
    steps = jnp.zeros_like(places)
    for _ in range(LONGEST):
        steps = steps + is_empty(reached & here)
        reached = grow(reached, within)
    return jnp.where(is_empty(reached & here), FAR, steps)


def _direction(
    game: Game, facts: Facts, prospect: Prospect, aim: Aim, ahead: Array, stay: Array, weights: Weights
) -> Option:
    """What walking or shooting in a direction is worth."""
    scene = game.scene
    strikes = aim.target != NOWHERE
    target = only(strikes, bit(aim.target))
    struck = facts.enemies.alive & (facts.enemies.at == aim.target)
    hp = jnp.where(struck, facts.enemies.hp, 0).max(0)
    harm, near = _threats(scene, facts, jnp.where(strikes, scene.at, aim.ahead), target)
    blow = jnp.where(aim.is_transmission, weights.signal, jnp.where(hp <= scene.attack, weights.kill, weights.hit))
    leaves = ~strikes & (aim.ahead == scene.gate)
    harm, near = jnp.where(leaves, 0, harm), jnp.where(leaves, 0, near)
    leaving = jnp.where(is_empty(prospect.goal & bit(scene.gate)), -30.0, 20.0)
    worth = jnp.where(strikes, blow - stay, jnp.where(leaves, leaving, -ahead))
    return Option(worth - _cost(scene, harm, near, weights), harm)


def _cost(scene: Scene, harm: Array, near: Array, weights: Weights) -> Array:
    return weights.harm * harm * (1 + (scene.hp == 2)) + weights.near * near + jnp.where(harm >= scene.hp, 100.0, 0.0)


def _threats(scene: Scene, facts: Facts, place: Array, struck: Board) -> tuple[Array, Array]:
    """How many enemies can strike at a place in the coming turn, and how many are within two cells of it."""
    enemies = facts.enemies
    awake = union(only(enemies.alive & ~enemies.stunned, bit(enemies.at))) - struck
    quick = union(only(enemies.alive & ~enemies.stunned & (enemies.kind == VIRUS), bit(enemies.at))) - struck
    here = bit(place)
    near = grow(here, full()) - here
    second = grow(near - scene.blocks - facts.enemies_at, full()) - near - here
    close = grow(grow(here, full()), full()) & ((facts.enemies_at - struck) | facts.transmissions_at)
    return count(near & awake) + count(second & quick), count(close)


def _use_programs(game: Game, facts: Facts, mask: Array, prospect: Prospect, action: Array, harm: Array) -> Array:
    """A program instead of the action where one helps; the rules later in the list come first."""
    scene = game.scene
    danger, deadly = harm >= 1, harm >= scene.hp
    beside = count(eight(scene.at) & facts.enemies_at)
    crowd = facts.enemy_count
    uses_energy = owns(scene, RESET) | owns(scene, ATK_PLUS) | owns(scene, STEP)
    wishes = {
        CALM: (scene.energy >= 8) & (game.stage >= 3),
        DELAY: facts.transmission_count >= 3,
        EXCH: uses_energy & (scene.energy < 4) & (scene.credits >= 8),
        REDUC: action == SIPHON,
        SIPH_PLUS: (scene.siphons == 0) & (prospect.gain > 6),
        POLY: deadly,
        WARP: deadly,
        DEBUG: danger,
        HACK: danger & (crowd >= 2),
        COL: danger,
        ROW: danger,
        ANTI_V: danger,
        D_BOM: danger,
        PUSH: danger,
        CRASH: danger & (deadly | (beside >= 2)),
        STEP: danger,
        UNDO: deadly,
        ATK_PLUS: scene.attack < 3,
        RESET: (scene.hp == 1) | (scene.energy >= 8),
    }
    keeps = jnp.where(owns(scene, UNDO), 1, 0)  # a credit for UNDO itself
    for program, wish in wishes.items():
        if program != UNDO and PROGRAMS[program].credits:
            wish = wish & (scene.credits >= PROGRAMS[program].credits + keeps)
        action = jnp.where(wish & mask[FIRST_PROGRAM + program], FIRST_PROGRAM + program, action)
    return action
