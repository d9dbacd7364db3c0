"""Random orders of many rows, without sorting them where there are many.

Sorting millions of random numbers costs more than a gradient step. Up to `SORTED` rows are sorted
all the same, by at least 20 random bits each: every order can come up. More are laid out as a grid and mixed by rounds
of random shifts: each round turns every row of the grid by an amount drawn for that row, then every
column by one drawn for that column. That is a bijection whatever is drawn, and after a few rounds
where a sample lands says nothing about where its neighbours do; but not every order can come up.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import Array

SORTED = 1 << 12
ROUNDS = 4
NARROWEST = 16


def shuffled(key: Array, orders: int, rows: int) -> Array:
    """The numbers 0 to rows - 1 in so many random orders [orders, rows]."""
    if rows <= SORTED:
        return _sorted(jax.random.bits(key, (orders, rows)))
    width = _width(rows)
    if width < NARROWEST:
        return jnp.argsort(jax.random.bits(key, (orders, rows)), -1)
    height = rows // width
    bits = jax.random.bits(key, (orders, ROUNDS, height + width))
    return jax.vmap(lambda each: _mixed(each[:, :height], each[:, height:]))(bits)


def _sorted(bits: Array) -> Array:
    """The order that sorts these random bits [..., rows].

    Each number has its place in its lowest bits and is sorted with it: on a CPU that takes a tenth of the time of
    sorting numbers and places side by side. Places take bits from chance, so this is for few rows.
    """
    rows = bits.shape[-1]
    places = jnp.uint32((1 << (rows - 1).bit_length()) - 1)
    return (jnp.sort(bits & ~places | jnp.arange(rows, dtype=jnp.uint32)) & places).astype(jnp.int32)


def _mixed(of_rows: Array, of_columns: Array) -> Array:
    """The order that random bits for each row [R, height] and each column [R, width] of every round give."""
    height, width = of_rows.shape[-1], of_columns.shape[-1]
    index = jnp.arange(height * width, dtype=jnp.int32)
    y, x = index // width, index % width
    right, down = (of_rows % width).astype(jnp.int32), (of_columns % height).astype(jnp.int32)
    for turn, drop in zip(right, down, strict=True):
        x = (x + turn[y]) % width
        y = (y + drop[x]) % height
    return y * width + x


def _width(rows: int) -> int:
    """The largest divisor up to the square root."""
    return next(width for width in range(math.isqrt(rows), 0, -1) if rows % width == 0)
