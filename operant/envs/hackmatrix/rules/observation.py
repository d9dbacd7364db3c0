"""What an agent sees, as one flat vector: 10 numbers of the player, 23 programs, 36 cells of 42 channels each."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from operant.envs.hackmatrix.constants import (
    CELLS,
    CH_BLOCK,
    CH_CENTRE,
    CH_CREDITS,
    CH_ENEMY,
    CH_ENEMY_HP,
    CH_ENERGY,
    CH_EXIT,
    CH_FROM_SIPHON,
    CH_PICKUP,
    CH_POINTS,
    CH_PROGRAM,
    CH_SIPHONED,
    CH_SPAWN,
    CH_STUNNED,
    CH_TRANSMISSION,
    CHANNELS,
    CRYPTOG,
    MAX_HP,
    MAX_POINTS,
    PLAYER_FEATURES,
    PROGRAM_COUNT,
    SIZE,
    STAGES,
)  # fmt: skip
from operant.envs.hackmatrix.rules.bits import cell_squares, col_of, per_cell, row_of
from operant.envs.hackmatrix.rules.fusing import first_at, settled
from operant.envs.hackmatrix.rules.lists import read_cells, read_enemies, read_transmissions, shifted
from operant.envs.hackmatrix.rules.state import Game, Scene

MOST_SEEN = 50  # credits or energy
PLAYER_SCALES = (SIZE - 1, SIZE - 1, MAX_HP, MOST_SEEN, MOST_SEEN, STAGES - 1, 10, 2, 1, 1)
TURNS_SEEN = 4
AMOUNT_SCALE = 3

# Where each channel lies: which of three words of its cell, from which bit, how many bits, and what it is divided by.
_FLAGS, _MORE, _AMOUNTS = range(3)
_LATE = 20  # programs from here on are in the second word
_PLACES = {
    **{channel: (_FLAGS, channel, 1, 1) for channel in range(32)},
    **{CH_PROGRAM + p: (_MORE, p - _LATE, 1, 1) for p in range(_LATE, PROGRAM_COUNT)},
    CH_PICKUP: (_MORE, 3, 1, 1),
    CH_EXIT: (_MORE, 4, 1, 1),
    CH_CENTRE: (_MORE, 5, 1, 1),
    CH_POINTS: (_MORE, 8, 8, MAX_POINTS),
    CH_SPAWN: (_MORE, 16, 8, MAX_POINTS),
    CH_TRANSMISSION: (_MORE, 24, 3, TURNS_SEEN),
    CH_ENEMY_HP: (_AMOUNTS, 0, 8, MAX_HP),
    CH_CREDITS: (_AMOUNTS, 8, 8, AMOUNT_SCALE),
    CH_ENERGY: (_AMOUNTS, 16, 8, AMOUNT_SCALE),
}
_WORD, _SHIFT, _WIDTH, _SCALE = (np.array(row) for row in zip(*(_PLACES[c] for c in range(CHANNELS)), strict=True))


def observe(game: Game) -> Array:
    """The vector [.., 1545], the environments first."""
    scene = game.scene
    flags, more, amounts = (jnp.moveaxis(settled(words), 0, -1)[..., None] for words in _cell_words(scene))
    chosen = jnp.where(_WORD == _FLAGS, flags, jnp.where(_WORD == _MORE, more, amounts))
    # Settled before it is flattened: in one pass, every number would first take its flat index apart.
    numbers = settled(chosen >> _SHIFT.astype(np.uint32) & ((1 << _WIDTH) - 1).astype(np.uint32))
    flat = numbers.reshape(*numbers.shape[:-2], CELLS * CHANNELS).astype(jnp.int32)
    grid = flat.astype(jnp.float32) * _reciprocals(np.tile(_SCALE, CELLS))
    return jnp.concatenate([_player(game), _programs(scene), grid], axis=-1)


def _player(game: Game) -> Array:
    """The numbers of the player, all in one pass; credits and energy are limited."""
    scene, lane = game.scene, np.arange(PLAYER_FEATURES)
    place = row_of(scene.at), col_of(scene.at)
    wealth = jnp.minimum(scene.credits, MOST_SEEN), jnp.minimum(scene.energy, MOST_SEEN)
    progress = game.stage - 1, scene.siphons, scene.attack - 1, scene.show, scene.calm
    numbers = jnp.zeros((*scene.at.shape, PLAYER_FEATURES), jnp.int32)
    for index, number in enumerate((*place, scene.hp, *wealth, *progress)):
        numbers = jnp.where(lane == index, number[..., None], numbers)
    return numbers.astype(jnp.float32) * _reciprocals(np.array(PLAYER_SCALES))


def _reciprocals(scales: np.ndarray) -> np.ndarray:
    """What to multiply by: a division by constants is rounded as the compiler likes, a product is not."""
    return np.float32(1) / scales.astype(np.float32)


def _programs(scene: Scene) -> Array:
    return (scene.owned[..., None] >> np.arange(PROGRAM_COUNT, dtype=np.uint32) & 1).astype(jnp.float32)


def _cell_words(scene: Scene) -> tuple[Array, Array, Array]:
    """Three words a cell that hold all its channels."""
    cells, enemy, signal = read_cells(scene.cells), _first_enemies(scene), _first_transmissions(scene)
    walls, siphoned = per_cell(scene.blocks), per_cell(scene.siphoned)
    plain = walls & ~cells.question
    data, program = plain & ~cells.is_program, plain & cells.is_program
    resource = jnp.where(walls & ~siphoned, 0, cells.amount)
    held = jnp.where(program, cells.value, 32).astype(jnp.uint32)
    flags = (
        enemy & ((1 << CH_BLOCK) - 1)
        | shifted(data, CH_BLOCK)
        | shifted(program, CH_BLOCK + 1)
        | shifted(walls & cells.question, CH_BLOCK + 2)
        | shifted(walls & siphoned, CH_SIPHONED)
        | jnp.where(held < _LATE, jnp.uint32(1) << held + CH_PROGRAM, 0)
    )
    more = (
        jnp.where(program & (held >= _LATE), jnp.uint32(1) << held - _LATE, 0)
        | shifted(per_cell(scene.pickups), 3)
        | shifted(cell_squares(scene.gate) == scene.gate, 4)
        | shifted(per_cell(scene.centres), 5)
        | shifted(jnp.where(data, cells.value, 0), 8)
        | shifted(jnp.where(plain, cells.spawn, 0), 16)
        | shifted(signal, 24)
    )
    amounts = (
        enemy >> 8
        | shifted(jnp.where(cells.is_energy, 0, resource), 8)
        | shifted(jnp.where(cells.is_energy, resource, 0), 16)
    )
    return flags, more, amounts


def _first_enemies(scene: Scene) -> Array:
    """By cell: the channels 0 to 6 but for HP, which is in bits 8 to 15, of its first enemy in list order if seen."""
    enemies = read_enemies(scene.enemies)
    looks = (
        shifted(enemies.kind, 0)
        | shifted(enemies.stunned, 2)
        | shifted(enemies.from_siphon, 3)
        | shifted(enemies.hp, 4)  # never 0, so an empty cell differs from any enemy
    )
    squares = cell_squares(scene.at)
    first = first_at(squares, enemies.at, enemies.alive, looks)
    kind = first & 3
    in_line = (row_of(squares) == row_of(scene.at)) | (col_of(squares) == col_of(scene.at))
    visible = (first != 0) & ((kind != CRYPTOG) | in_line | scene.show)
    shown = (
        jnp.uint32(1) << kind + CH_ENEMY
        | (first >> 2 & 1) << CH_STUNNED
        | (first >> 3 & 1) << CH_FROM_SIPHON
        | (first >> 4 & 255) << 8
    )
    return jnp.where(visible, shown, 0)


def _first_transmissions(scene: Scene) -> Array:
    """By cell: the turns that its first transmission has left, as far as they are seen."""
    signals = read_transmissions(scene.transmissions)
    turns = jnp.minimum(signals.turns, TURNS_SEEN).astype(jnp.uint32)
    return first_at(cell_squares(scene.at), signals.at, signals.alive, turns)
