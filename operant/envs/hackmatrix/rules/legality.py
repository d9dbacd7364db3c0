"""What can be done: the facts that actions depend on, and which programs can run."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from operant.envs.hackmatrix.constants import (
    ANTI_V,
    ATK_PLUS,
    ATK_PLUS_USES,
    CALM,
    COL,
    CRASH,
    D_BOM,
    DAEMON,
    DEBUG,
    DELAY,
    HACK,
    MAX_HP,
    POLY,
    PROGRAM_COUNT,
    PROGRAMS,
    PULL,
    PUSH,
    REDUC,
    RESET,
    ROW,
    SCORE,
    SHOW,
    SIZE,
    STAGES,
    UNDO,
    VIRUS,
    WARP,
)  # fmt: skip
from operant.envs.hackmatrix.rules.bits import (
    MOVES,
    Board,
    bit,
    col_of,
    eight,
    full,
    is_empty,
    row_of,
    to_board,
)
from operant.envs.hackmatrix.rules.fusing import column, fold_or, total
from operant.envs.hackmatrix.rules.lists import (
    Enemies,
    Transmissions,
    flag,
    read_cells,
    read_enemies,
    read_transmissions,
    where_they_are,
)
from operant.envs.hackmatrix.rules.state import Game


class Facts(NamedTuple):
    """Who is where, and which blocks would still send enemies if they were siphoned."""

    enemies: Enemies
    transmissions: Transmissions
    enemies_at: Board
    transmissions_at: Board
    enemy_count: Array
    transmission_count: Array
    kinds: Array  # a bit for each type of enemy there is
    spawning: Board


def survey(game: Game) -> Facts:
    """The facts of a game between two steps."""
    scene = game.scene
    enemies, signals = read_enemies(scene.enemies), read_transmissions(scene.transmissions)
    kinds = jnp.where(enemies.alive, jnp.uint32(1) << enemies.kind.astype(jnp.uint32), 0)
    return Facts(
        enemies=enemies,
        transmissions=signals,
        enemies_at=where_they_are(enemies),
        transmissions_at=where_they_are(signals),
        enemy_count=total(enemies.alive),
        transmission_count=total(signals.alive),
        kinds=fold_or(kinds),
        spawning=to_board(read_cells(scene.cells).spawn > 0) & scene.blocks - scene.siphoned,
    )


def programs_that_run(game: Game, facts: Facts) -> Array:
    """A bit for each program that is owned, can be paid for and whose condition holds."""
    scene = game.scene
    fit = [can & affordable(scene.credits, scene.energy, p) for p, can in enumerate(_conditions(game, facts))]
    return scene.owned & reduce(or_, (can.astype(jnp.uint32) << p for p, can in enumerate(fit)))


def affordable(credit: Array, energy: Array, program: int) -> Array:
    """Whether the price of a program can be paid."""
    return (credit >= PROGRAMS[program].credits) & (energy >= PROGRAMS[program].energy)


def _conditions(game: Game, facts: Facts) -> list[Array]:
    """By program: whether it would have something to do."""
    scene = game.scene
    always = jnp.ones_like(scene.show)
    someone, something = facts.enemy_count > 0, facts.transmission_count > 0
    special = {
        PUSH: someone,
        PULL: someone,
        CRASH: ~is_empty((facts.enemies_at | facts.transmissions_at | scene.blocks) & eight(scene.at)),
        WARP: someone | something,
        POLY: someone,
        DEBUG: ~is_empty(facts.enemies_at & scene.blocks),
        ROW: ~is_empty(facts.enemies_at & _row(scene.at)),
        COL: ~is_empty(facts.enemies_at & _column(scene.at)),
        UNDO: game.saved > 0,
        SHOW: ~scene.show,
        RESET: scene.hp < MAX_HP,
        CALM: ~scene.calm,
        D_BOM: flag(facts.kinds, DAEMON),
        DELAY: something,
        ANTI_V: flag(facts.kinds, VIRUS),
        SCORE: game.stage < STAGES,
        REDUC: ~is_empty(facts.spawning),
        ATK_PLUS: scene.attack_uses < ATK_PLUS_USES,
        HACK: ~is_empty(scene.siphoned),
    }
    return [special.get(program, always) for program in range(PROGRAM_COUNT)]


def _row(at: Array) -> Board:
    line = jnp.uint32((1 << SIZE) - 1)
    row = row_of(at).astype(jnp.uint32)
    return Board(jnp.where(row < 3, line << 8 * row, 0), jnp.where(row < 3, 0, line << 8 * (row - 3)))


def _column(at: Array) -> Board:
    line = jnp.uint32(0x010101) << col_of(at).astype(jnp.uint32)
    return Board(line, line)


def action_mask(game: Game) -> Array:
    """The 28 flags of the mask along the first axis."""
    facts, scene = survey(game), game.scene
    passable = facts.enemies_at | (full() - scene.blocks)
    here = bit(scene.at)
    ways = [~is_empty(move(here) & passable) for move in MOVES]
    programs = programs_that_run(game, facts)
    running = (programs >> column(range(PROGRAM_COUNT), programs).astype(jnp.uint32)) & 1 != 0
    return jnp.concatenate([jnp.stack([*ways, scene.siphons > 0]), running])
