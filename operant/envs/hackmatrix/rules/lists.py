"""The lists of the game, one packed word an entry: enemies, transmissions, and what lies on each cell.

A list is hole-free and in the law's order between steps; an empty slot is the word 0. While a step is
under way entries may be crossed out, and `compact` closes the ranks.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from operant.envs.hackmatrix.constants import ENEMIES, MAX_ENEMIES, MAX_TRANSMISSIONS
from operant.envs.hackmatrix.rules.bits import Board, bit, only, union
from operant.envs.hackmatrix.rules.fusing import column

SLOTS = MAX_ENEMIES
AMOUNT_LIMIT = 255  # of a resource, of points, of a spawn count
HP_LIMIT = 200  # of an enemy; in play it has at most 3
TURNS_LIMIT = 30_000  # of a transmission when it is set; DELAY may add to it
MAX_HP = tuple(kind.max_hp for kind in ENEMIES)

# Bits of an enemy's word: at 0-5, last_seen 6-11, kind 12-13, flags, hp 24-31
ENEMY_STUNNED, ENEMY_FROM_SIPHON, ENEMY_FROM_TASK, ENEMY_DISABLED, ENEMY_FINISHED, ENEMY_ALIVE = range(14, 20)
# Bits of a transmission's word: at 0-5, flags, kind 8-9, turns 16-31
SIGNAL_FROM_SIPHON, SIGNAL_FROM_TASK, SIGNAL_ALIVE = 6, 7, 10
# Of a cell's word: what stays when its block is gone
RESOURCE_BITS = (1 << 9) - 1
# What UNDO does not bring back
ENEMY_ORIGIN = 1 << ENEMY_FROM_SIPHON | 1 << ENEMY_FROM_TASK
SIGNAL_ORIGIN = 1 << SIGNAL_FROM_SIPHON | 1 << SIGNAL_FROM_TASK


class Enemies(NamedTuple):
    """Enemies in list order. `disabled` and `finished` (has attacked) are only ever set within an enemy turn."""

    alive: Array
    kind: Array
    at: Array
    hp: Array
    last_seen: Array
    stunned: Array
    from_siphon: Array
    from_task: Array
    disabled: Array
    finished: Array


class Transmissions(NamedTuple):
    """Transmissions in list order."""

    alive: Array
    kind: Array
    at: Array
    turns: Array
    from_siphon: Array
    from_task: Array


class Cells(NamedTuple):
    """What lies on each cell: a resource, and the content of a block where there is one.

    `value` is the points of a data block or the program of a program block.
    """

    amount: Array
    is_energy: Array
    is_program: Array
    question: Array
    value: Array
    spawn: Array


def field(words: Array, start: int, width: int) -> Array:
    """A number within each word."""
    return ((words >> start) & ((1 << width) - 1)).astype(jnp.int32)


def flag(words: Array, place: int) -> Array:
    """A bit of each word."""
    return (words >> place) & 1 != 0


def shifted(value: Array, place: int) -> Array:
    """A number or flag moved to its place in a word."""
    return value.astype(jnp.uint32) << place


def read_enemies(words: Array) -> Enemies:
    """The entries of a packed list."""
    return Enemies(
        alive=flag(words, ENEMY_ALIVE),
        kind=field(words, 12, 2),
        at=field(words, 0, 6),
        hp=field(words, 24, 8),
        last_seen=field(words, 6, 6),
        stunned=flag(words, ENEMY_STUNNED),
        from_siphon=flag(words, ENEMY_FROM_SIPHON),
        from_task=flag(words, ENEMY_FROM_TASK),
        disabled=flag(words, ENEMY_DISABLED),
        finished=flag(words, ENEMY_FINISHED),
    )


def write_enemies(enemies: Enemies) -> Array:
    """The packed list of entries; those not alive are empty slots."""
    words = (
        shifted(enemies.alive, ENEMY_ALIVE)
        | shifted(enemies.kind, 12)
        | shifted(enemies.at, 0)
        | shifted(enemies.hp, 24)
        | shifted(enemies.last_seen, 6)
        | shifted(enemies.stunned, ENEMY_STUNNED)
        | shifted(enemies.from_siphon, ENEMY_FROM_SIPHON)
        | shifted(enemies.from_task, ENEMY_FROM_TASK)
        | shifted(enemies.disabled, ENEMY_DISABLED)
        | shifted(enemies.finished, ENEMY_FINISHED)
    )
    return jnp.where(enemies.alive, words, 0)


def read_transmissions(words: Array) -> Transmissions:
    """The entries of a packed list."""
    return Transmissions(
        alive=flag(words, SIGNAL_ALIVE),
        kind=field(words, 8, 2),
        at=field(words, 0, 6),
        turns=field(words, 16, 16),
        from_siphon=flag(words, SIGNAL_FROM_SIPHON),
        from_task=flag(words, SIGNAL_FROM_TASK),
    )


def write_transmissions(signals: Transmissions) -> Array:
    """The packed list of entries; those not alive are empty slots."""
    words = (
        shifted(signals.alive, SIGNAL_ALIVE)
        | shifted(signals.kind, 8)
        | shifted(signals.at, 0)
        | shifted(signals.turns, 16)
        | shifted(signals.from_siphon, SIGNAL_FROM_SIPHON)
        | shifted(signals.from_task, SIGNAL_FROM_TASK)
    )
    return jnp.where(signals.alive, words, 0)


def read_cells(words: Array) -> Cells:
    """What lies on the 36 cells."""
    return Cells(
        amount=field(words, 0, 8),
        is_energy=flag(words, 8),
        is_program=flag(words, 9),
        question=flag(words, 10),
        value=field(words, 16, 8),
        spawn=field(words, 24, 8),
    )


def write_cells(cells: Cells) -> Array:
    """The 36 cells packed."""
    return (
        shifted(cells.amount, 0)
        | shifted(cells.is_energy, 8)
        | shifted(cells.is_program, 9)
        | shifted(cells.question, 10)
        | shifted(cells.value, 16)
        | shifted(cells.spawn, 24)
    )


def where_they_are(entries: Enemies | Transmissions) -> Board:
    """The cells on which there are entries of a list."""
    return union(only(entries.alive, bit(entries.at)))


def slots(like: Array, number: int = SLOTS) -> Array:
    """0, 1, .. along the first axis."""
    return column(range(number), like)


assert MAX_TRANSMISSIONS == SLOTS
