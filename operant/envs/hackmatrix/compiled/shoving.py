"""PUSH and PULL: every enemy a step away from the player, or nearer."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from operant.envs.hackmatrix.compiled.bits import ROW_BITS, col_of, is_on_board, manhattan, row_of

FAR = 64  # more than any distance


def shove(at: Array, player: Array, pull: Array) -> tuple[Array, Array]:
    """Where each enemy is sent from where it stands, and whether there is such a cell."""
    toward = jnp.where(pull, -1, 1)
    rows = toward * jnp.sign(row_of(at) - row_of(player)) * ROW_BITS
    cols = toward * jnp.sign(col_of(at) - col_of(player))
    ways = [(rows + cols, None), (rows, rows != 0), (cols, cols != 0)]
    best, target = jnp.full_like(at, FAR), at
    for change, offered in ways:
        square = at + change
        fits = is_on_board(square) & ~(pull & (square == player))
        fits = fits if offered is None else fits & offered
        cost = toward * -manhattan(square, player)
        better = fits & (cost < best)
        best, target = jnp.where(better, cost, best), jnp.where(better, square, target)
    return target, best < FAR
