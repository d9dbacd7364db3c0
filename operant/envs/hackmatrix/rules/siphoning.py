"""The siphon: what the cross around the player gives, and what a better place would have given."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from operant.envs.hackmatrix.constants import CELLS, SIZE
from operant.envs.hackmatrix.rules.bits import (
    MOVES,
    Board,
    bit,
    cell_squares,
    choose,
    full,
    grow,
    is_empty,
    only,
    per_cell,
)
from operant.envs.hackmatrix.rules.fusing import column, fold, fold_or, settled, total
from operant.envs.hackmatrix.rules.lists import AMOUNT_LIMIT, Cells, field, read_cells, shifted, write_cells
from operant.envs.hackmatrix.rules.state import Scene

_TOTAL_BITS = 11  # hold the sum of five amounts


class Haul(NamedTuple):
    """What a siphon brought, and the credits and energy that it missed."""

    scene: Scene
    pending: Array
    missed_credits: Array
    missed_energy: Array


class Yields(NamedTuple):
    """By cell: what siphoning from it would give. Data counts by blocks, programs are the new ones as bits."""

    amounts: Array  # credits, energy and data, 11 bits each but the last
    programs: Array

    @property
    def credits(self) -> Array:
        return field(self.amounts, 0, _TOTAL_BITS)

    @property
    def energy(self) -> Array:
        return field(self.amounts, _TOTAL_BITS, _TOTAL_BITS)

    @property
    def data(self) -> Array:
        return self.amounts >> 2 * _TOTAL_BITS


def siphon(scene: Scene, acts: Array) -> Haul:
    """Drain the cross where the player siphons; elsewhere nothing changes."""
    cells = read_cells(scene.cells)
    missed_credits, missed_energy = _missed(scene, cells)
    here = bit(scene.at)
    cross = only(acts, grow(here, full()) - scene.siphoned)
    drained, walls = per_cell(cross), per_cell(scene.blocks)
    opened, collected = drained & walls, drained & ~walls
    gains = cells.amount * collected
    scene = scene._replace(
        credits=scene.credits + total(jnp.where(cells.is_energy, 0, gains)),
        energy=scene.energy + total(jnp.where(cells.is_energy, gains, 0)),
        score=scene.score + total(jnp.where(opened & ~cells.is_program, cells.value, 0)),
        owned=scene.owned | fold_or(_program_bits(cells, opened)),
        siphons=scene.siphons - acts,
        centres=scene.centres | only(acts, here),
        siphoned=scene.siphoned | cross,
        cells=write_cells(_emptied(cells, opened, collected)),
    )
    pending = total(jnp.where(opened, cells.spawn, 0))
    return Haul(scene, pending, jnp.where(acts, missed_credits, 0), jnp.where(acts, missed_energy, 0))


def _emptied(cells: Cells, opened: Array, collected: Array) -> Cells:
    return cells._replace(
        amount=jnp.where(collected, 0, cells.amount),
        is_energy=cells.is_energy & ~collected,
        question=cells.question & ~opened,
        spawn=jnp.where(opened, 0, cells.spawn),
    )


def _program_bits(cells: Cells, where: Array) -> Array:
    bits = jnp.uint32(1) << cells.value.astype(jnp.uint32)
    return jnp.where(where & cells.is_program, bits, 0)


def _missed(scene: Scene, cells: Cells) -> tuple[Array, Array]:
    """Credits and energy by which the better places exceed the player's, each at its largest.

    A place that counts lies beside all blocks of the player's own cross, so its data are the
    player's and perhaps more: counting the blocks is enough to compare the multisets.
    """
    offers = _yields(scene, cells)
    mine = cell_squares(scene.at) == scene.at
    own = Yields(*(fold_or(jnp.where(mine, offer, 0)) for offer in offers))
    rivals = choose((own.data > 0) | (own.programs != 0), _beside_the_same_blocks(scene), full())
    equal = (offers.data == own.data) & (offers.programs == own.programs)
    at_least = (offers.credits >= own.credits) & (offers.energy >= own.energy)
    better = settled(per_cell(rivals - scene.blocks) & equal & at_least)
    credit = jnp.where(better, offers.credits - own.credits, 0)
    energy = jnp.where(better, offers.energy - own.energy, 0)
    return fold(lax.max, credit), fold(lax.max, energy)


def _beside_the_same_blocks(scene: Scene) -> Board:
    """The cells adjacent to every unsiphoned block of the player's cross."""
    here, beside = bit(scene.at), full()
    for move in MOVES:
        block = move(here) & scene.blocks - scene.siphoned
        beside = choose(is_empty(block), beside, beside & grow(block, full()) - block)
    return beside


def _yields(scene: Scene, cells: Cells) -> Yields:
    """The sums over crosses, several small numbers in one word; a block yields nothing."""
    walls = per_cell(scene.blocks)
    fresh = ~per_cell(scene.siphoned)
    amount = jnp.where(fresh & ~walls, cells.amount, 0)
    data = fresh & walls & ~cells.is_program
    packed = shifted(jnp.where(cells.is_energy, amount << _TOTAL_BITS, amount), 0) | shifted(data, 2 * _TOTAL_BITS)
    programs = _program_bits(cells, fresh & walls) & ~scene.owned
    return Yields(
        settled(jnp.where(walls, 0, over_crosses(packed, jnp.add))),
        settled(jnp.where(walls, 0, over_crosses(programs, jnp.bitwise_or))),
    )


def over_crosses(values: Array, combine: Callable[[Array, Array], Array]) -> Array:
    """By cell: the values of its cross combined."""
    col = column([cell % SIZE for cell in range(CELLS)], values[0])
    total = values
    for ahead, exists in ((SIZE, True), (-SIZE, True), (1, col < SIZE - 1), (-1, col > 0)):
        total = combine(total, jnp.where(exists, _from_ahead(values, ahead), 0))
    return total


def _from_ahead(values: Array, ahead: int) -> Array:
    """By cell: the value of the cell so many numbers ahead, 0 beyond the last or first."""
    rest = ((0, 0, 0) for _ in values.shape[1:])
    return lax.pad(values, jnp.zeros((), values.dtype), ((-ahead, ahead, 0), *rest))


assert 5 * AMOUNT_LIMIT < 1 << _TOTAL_BITS
