"""A random order of many rows, without sorting them where there are many.

Sorting millions of random numbers costs more than a gradient step. Up to `SORTED` rows are sorted
all the same, which draws every order equally often. More are laid out as a grid and mixed by rounds
of random shifts: each round turns every row of the grid by an amount drawn for that row, then every
column by one drawn for that column. That is a bijection whatever is drawn, and after a few rounds
where a sample lands says nothing about where its neighbours do; not every order can come up.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import Array

SORTED = 1 << 15
ROUNDS = 4
NARROWEST = 16


def shuffled(key: Array, rows: int) -> Array:
    """The numbers 0 to rows - 1 in a random order."""
    width = _width(rows)
    if rows <= SORTED or width < NARROWEST:
        return jax.random.permutation(key, rows)
    return _mixed(key, rows, width)


def _mixed(key: Array, rows: int, width: int) -> Array:
    height = rows // width
    index = jnp.arange(rows, dtype=jnp.int32)
    y, x = index // width, index % width
    for of_row, of_column in jax.random.split(key, (ROUNDS, 2)):
        x = (x + jax.random.randint(of_row, (height,), 0, width)[y]) % width
        y = (y + jax.random.randint(of_column, (width,), 0, height)[x]) % height
    return y * width + x


def _width(rows: int) -> int:
    """The largest divisor up to the square root."""
    return next(width for width in range(math.isqrt(rows), 0, -1) if rows % width == 0)
