"""Sets of cells as bits: a row is a byte, three rows are a word, so that a whole board is two words.

A cell is named by its *square*, 8 * row + column. The two unused bits of every row stop a set from
wrapping round the edge when it is shifted, as long as what is shifted is cut to the board after.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from operant.envs.hackmatrix.constants import CORNERS, SIZE
from operant.envs.hackmatrix.rules.fusing import column, fold_or

WORD_SQUARES = 24  # squares of one word
ROW_BITS = 8
SQUARES = tuple(ROW_BITS * row + col for row in range(SIZE) for col in range(SIZE))  # by cell number
CORNER_SQUARES = tuple(ROW_BITS * row + col for row, col in CORNERS)
STEPS = (ROW_BITS, -ROW_BITS, -1, 1)  # what up, down, left and right add to a square


class Board(NamedTuple):
    """A set of cells: rows 0 to 2 in `low`, rows 3 to 5 in `high`."""

    low: Array
    high: Array

    def __or__(self, other: Board) -> Board:
        return Board(self.low | other.low, self.high | other.high)

    def __and__(self, other: Board) -> Board:
        return Board(self.low & other.low, self.high & other.high)

    def __sub__(self, other: Board) -> Board:
        return Board(self.low & ~other.low, self.high & ~other.high)


def board_of(squares: tuple[int, ...]) -> Board:
    """A constant set."""
    low = sum(1 << square for square in squares if square < WORD_SQUARES)
    high = sum(1 << square - WORD_SQUARES for square in squares if square >= WORD_SQUARES)
    return Board(jnp.uint32(low), jnp.uint32(high))


def full() -> Board:
    """All 36 cells."""
    return board_of(SQUARES)


def corners() -> Board:
    """The four corners."""
    return board_of(CORNER_SQUARES)


def bit(square: Array) -> Board:
    """The set of one cell."""
    at = square.astype(jnp.uint32)
    one = jnp.uint32(1)
    low = lax.shift_left(jnp.broadcast_to(one, at.shape), at) & ((1 << WORD_SQUARES) - 1)
    high = lax.shift_left(jnp.broadcast_to(one, at.shape), at - WORD_SQUARES)  # beyond the word: no bit at all
    return Board(low, jnp.where(at >= WORD_SQUARES, high, 0))


def only(condition: Array, board: Board) -> Board:
    """The set where the condition holds, else the empty one."""
    return Board(jnp.where(condition, board.low, 0), jnp.where(condition, board.high, 0))


def choose(condition: Array, yes: Board, no: Board) -> Board:
    """One of two sets."""
    return Board(jnp.where(condition, yes.low, no.low), jnp.where(condition, yes.high, no.high))


def holds(board: Board, square: Array) -> Array:
    """Whether a cell is in the set."""
    at = square.astype(jnp.uint32)
    below = at < WORD_SQUARES
    word = jnp.where(below, board.low, board.high)
    return (word >> jnp.where(below, at, at - WORD_SQUARES)) & 1 != 0


def is_empty(board: Board) -> Array:
    """Whether the set has no cell."""
    return (board.low | board.high) == 0


def count(board: Board) -> Array:
    """How many cells are in the set."""
    low, high = lax.population_count(board.low), lax.population_count(board.high)
    return (low + high).astype(jnp.int32)


def up(board: Board) -> Board:
    """Every cell moved one row up; what leaves the board is gone, in this and the other three."""
    return Board(board.low << ROW_BITS, board.high << ROW_BITS | board.low >> 2 * ROW_BITS) & full()


def down(board: Board) -> Board:
    """Every cell moved one row down."""
    return Board(board.low >> ROW_BITS | board.high << 2 * ROW_BITS, board.high >> ROW_BITS) & full()


def left(board: Board) -> Board:
    """Every cell moved one column to the left."""
    return Board(board.low >> 1, board.high >> 1) & full()


def right(board: Board) -> Board:
    """Every cell moved one column to the right."""
    return Board(board.low << 1, board.high << 1) & full()


MOVES = (up, down, left, right)


def grow(board: Board, within: Board) -> Board:
    """The set and its neighbours as far as they are in `within`, itself a part of the board."""
    low, high = board
    low_near = low | low << 1 | low >> 1 | low << ROW_BITS | low >> ROW_BITS | high << 2 * ROW_BITS
    high_near = high | high << 1 | high >> 1 | high << ROW_BITS | high >> ROW_BITS | low >> 2 * ROW_BITS
    return Board(low_near & within.low, high_near & within.high)


def eight(square: Array) -> Board:
    """The cells at Chebyshev distance 1."""
    here = bit(square)
    row = here | left(here) | right(here)
    return (row | up(row) | down(row)) - here


def nth(board: Board, n: Array) -> Array:
    """The square of the n-th cell of the set in row-major order; n must be less than its count."""
    in_low = lax.population_count(board.low).astype(jnp.int32)
    upper = n >= in_low
    word = jnp.where(upper, board.high, board.low)
    n = n - jnp.where(upper, in_low, 0)
    return nth_bit(word, n, (16, 8, 4, 2, 1)) + jnp.where(upper, WORD_SQUARES, 0)


def nth_bit(word: Array, n: Array, halves: tuple[int, ...] = (16, 8, 4, 2, 1)) -> Array:
    """The place of the n-th set bit of a word, found by halving."""
    place = jnp.zeros_like(n)
    for half in halves:
        below = lax.population_count(word & ((1 << half) - 1)).astype(jnp.int32)
        beyond = n >= below
        place = place + jnp.where(beyond, half, 0)
        n = n - jnp.where(beyond, below, 0)
        word = jnp.where(beyond, word >> half, word)
    return place


def looked_up(table: tuple[int, ...], index: Array) -> Array:
    """Entries of a table of numbers below 8, bit by bit: a shift is cheaper than a gather."""
    place = index.astype(jnp.uint32)
    planes = [sum((entry >> plane & 1) << i for i, entry in enumerate(table)) for plane in range(3)]
    bits = [(jnp.uint32(plane) >> place & 1) << i for i, plane in enumerate(planes)]
    return reduce(or_, bits).astype(jnp.int32)


def union(boards: Board) -> Board:
    """The union along the first axis, of slots."""
    return Board(fold_or(boards.low), fold_or(boards.high))


def any_of(boards: list[Board]) -> Board:
    """The union of a few sets."""
    return reduce(or_, boards)


def cell_squares(like: Array) -> Array:
    """The squares of the 36 cells along the first axis."""
    return column(SQUARES, like)


def per_cell(board: Board) -> Array:
    """The set as 36 flags along the first axis."""
    return holds(Board(board.low[None], board.high[None]), cell_squares(board.low))


def to_board(flags: Array) -> Board:
    """36 flags along the first axis as a set."""
    squares = jnp.broadcast_to(cell_squares(flags[0]), flags.shape)
    return union(only(flags, bit(squares)))


def is_on_board(square: Array) -> Array:
    """Whether a square that a step may have led off the board is still on it."""
    return (square >= 0) & (square < SIZE * ROW_BITS) & (square % ROW_BITS < SIZE)


def row_of(square: Array) -> Array:
    """The row of a square."""
    return square >> 3


def col_of(square: Array) -> Array:
    """The column of a square."""
    return square & 7


def manhattan(a: Array, b: Array) -> Array:
    """Rows and columns between two squares."""
    return abs(row_of(a) - row_of(b)) + abs(col_of(a) - col_of(b))
