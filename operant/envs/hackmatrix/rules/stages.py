"""A new game, and the board of a new stage."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from operant.envs.hackmatrix.constants import (
    AMOUNTS,
    AT_BONUS,
    AT_CONTENT,
    AT_CORNER,
    AT_EXIT,
    AT_RESOURCE,
    AT_STAGE_SPAWN,
    BONUS_CREDITS,
    BONUS_ENERGY,
    BONUS_SIPHONS,
    CELLS,
    MAX_BLOCKS,
    MAX_POINTS,
    PROGRAM_COUNT,
    PROGRAMS,
    QUESTION_ODDS,
)  # fmt: skip
from operant.envs.hackmatrix.rules.bits import (
    CORNER_SQUARES,
    Board,
    bit,
    cell_squares,
    corners,
    full,
    holds,
    looked_up,
    nth_bit,
    per_cell,
    to_board,
)
from operant.envs.hackmatrix.rules.draws import Source, scaled
from operant.envs.hackmatrix.rules.fusing import column, fold_or, settled, total
from operant.envs.hackmatrix.rules.layouts import Layout, draw_layout
from operant.envs.hackmatrix.rules.lists import (
    Cells,
    read_enemies,
    read_transmissions,
    slots,
    where_they_are,
    write_cells,
)
from operant.envs.hackmatrix.rules.spawning import Room, room, spawn
from operant.envs.hackmatrix.rules.state import (
    CREDITS_ROW,
    ENERGY_ROW,
    GAME_WORDS,
    NOTES_ROW,
    SIPHONS_ROW,
    SOURCE_ROWS,
    Game,
    blank_words,
)  # fmt: skip


def new_games(source: Source) -> Array:
    """The words of games before their first stage is laid out: the player on a corner, with one bonus."""
    drawn = settled(source.u32(column((AT_CORNER, AT_BONUS), source.event)))
    corner, bonus = scaled(drawn[0], len(CORNER_SQUARES)), scaled(drawn[1], 3)
    blank = blank_words().reshape(-1, *(1 for _ in source.event.shape))
    values = {
        NOTES_ROW: blank[NOTES_ROW] | _corner(corner).astype(jnp.uint32),
        CREDITS_ROW: jnp.where(bonus == 0, BONUS_CREDITS, 0),
        ENERGY_ROW: jnp.where(bonus == 1, BONUS_ENERGY, 0),
        SIPHONS_ROW: jnp.where(bonus == 2, BONUS_SIPHONS, 0),
        **dict(zip(SOURCE_ROWS, source.after(), strict=True)),
    }
    row = column(range(GAME_WORDS), source.event)
    words = jnp.broadcast_to(blank, (GAME_WORDS, *source.event.shape))
    for index, value in values.items():
        words = jnp.where(row == index, value.astype(jnp.uint32), words)
    return words


def lay_out(game: Game) -> Game:
    """A fresh board, drawn at the event just finished.

    Enemies, transmissions, pending spawns, history, player and programs stay as they are.
    """
    scene, source = game.scene, game.source.before()
    off, number = jnp.zeros_like(scene.show), jnp.zeros_like(scene.turn)
    nothing = Board(jnp.zeros_like(scene.owned), jnp.zeros_like(scene.owned))
    exit_at = settled(_draw_exit(source, scene.at))
    others = where_they_are(read_enemies(scene.enemies))
    signals = where_they_are(read_transmissions(scene.transmissions))
    layout = draw_layout(source, full() - (corners() | others | signals), exit_at)
    cells, blocks = _fill(source, layout, exit_at)
    left = room(scene.at, others | blocks, signals)
    scene = scene._replace(
        turn=number,
        show=off,
        calm=off,
        attack_uses=number,
        gate=exit_at,
        blocks=blocks,
        siphoned=nothing,
        centres=nothing,
        pickups=corners() - (bit(scene.at) | bit(exit_at)),
        cells=cells,
        transmissions=_first_transmissions(game, source, left),
    )
    return game._replace(scene=scene, exit=exit_at, skip=off, next_task=game.interval)


def _corner(index: Array) -> Array:
    """The square of a corner by its number: bit 0 says which side, bit 1 which end."""
    return jnp.where(index & 1 == 1, CORNER_SQUARES[1], 0) + jnp.where(index & 2 == 2, CORNER_SQUARES[2], 0)


def _draw_exit(source: Source, at: Array) -> Array:
    """A corner that is not the player's."""
    mine = jnp.where(holds(Board(jnp.uint32(0), full().high), at), 2, 0) + (at & 7 != 0)
    drawn = source.pick(AT_EXIT, len(CORNER_SQUARES) - 1)
    return _corner(drawn + (drawn >= mine))


def _fill(source: Source, layout: Layout, exit_at: Array) -> tuple[Array, Board]:
    """What lies on every cell: the contents of blocks, and resources where there is neither block nor exit."""
    b = column(range(MAX_BLOCKS), exit_at)
    squares, placed = cell_squares(exit_at), b < layout.number
    here = placed[:, None] & (layout.squares[:, None] == squares)
    contents = jnp.where(here, settled(_draw_contents(source, exit_at))[:, None], 0)
    blocks = to_board(settled(here.any(0)))
    bare = ~per_cell(blocks) & (squares != exit_at)
    return settled(fold_or(contents) | jnp.where(bare, settled(_draw_resources(source, exit_at)), 0)), blocks


def _draw_contents(source: Source, like: Array) -> Array:
    """The words of 11 blocks. A program is one that no earlier block of the stage has."""
    b = column(range(MAX_BLOCKS), like)
    words = settled(source.u32(AT_CONTENT + 4 * b[:, None] + column(range(4), like)))
    is_program = scaled(words[:, 0], 2) == 1
    points = 1 + scaled(words[:, 2], MAX_POINTS)
    program = _draw_programs(words[:, 3], is_program)
    value = jnp.where(is_program, program, points)
    nothing = jnp.zeros_like(value)
    spawns = jnp.where(is_program, _spawn_count(program), points)
    question = scaled(words[:, 1], QUESTION_ODDS) == 0
    return write_cells(Cells(nothing, jnp.zeros_like(question), is_program, question, value, spawns))


def _draw_programs(words: Array, is_program: Array) -> Array:
    """For each block in order, one of the programs that are left."""
    everything = jnp.full(words.shape[1:], (1 << PROGRAM_COUNT) - 1, jnp.uint32)

    def one(left: Array, block: tuple[Array, Array]) -> tuple[Array, Array]:
        word, takes = block
        chosen = nth_bit(left, scaled(word, lax.population_count(left)))
        return jnp.where(takes, left & ~(jnp.uint32(1) << chosen.astype(jnp.uint32)), left), chosen

    return lax.scan(one, everything, (words, is_program))[1]


def _spawn_count(program: Array) -> Array:
    """The spawn count of a block that holds a program: 1 to 8."""
    return 1 + looked_up(tuple(one.spawn - 1 for one in PROGRAMS), program)


def _draw_resources(source: Source, like: Array) -> Array:
    """The words of 36 cells that hold a resource each."""
    words = settled(source.u32(AT_RESOURCE + column(range(2 * CELLS), like))).reshape(CELLS, 2, *like.shape)
    drawn = scaled(words[:, 0], len(AMOUNTS))
    amount = 1 + (drawn >= AMOUNTS.index(2)) + (drawn >= AMOUNTS.index(3))
    is_energy = scaled(words[:, 1], 2) == 1
    nothing = jnp.zeros_like(amount)
    return write_cells(Cells(amount, is_energy, jnp.zeros_like(is_energy), jnp.zeros_like(is_energy), nothing, nothing))


def _first_transmissions(game: Game, source: Source, left: Room) -> Array:
    """The list with as many new transmissions at its end as the number of the stage."""
    words = game.scene.transmissions
    number = total(read_transmissions(words).alive)
    index = slots(number)

    def one(j: Array, carried: tuple[Array, Room]) -> tuple[Array, Room]:
        words, left = carried
        word, left = spawn(source, AT_STAGE_SPAWN + 2 * j, j < game.stage, left, (False, False))
        return jnp.where(index == number + j, word, words), left

    return lax.fori_loop(0, game.stage.max(), one, (words, left))[0]
