"""Shortest paths by flooding: every round adds the neighbours of a set, for all environments at once."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from operant.envs.hackmatrix.rules.bits import MOVES, STEPS, Board, bit, choose, full, grow, is_empty

LONGEST = 23  # steps of the longest shortest path: an induced path on 6 x 6 cells has at most 24 of them
STAY = 0


def distance(start: Array, goal: Array, blocks: Board) -> Array:
    """Steps between two cells around the blocks, 0 when there is no way; start and goal may be blocks."""
    target = bit(goal)
    within = (full() - blocks) | target
    reached = bit(start)
    length = jnp.zeros_like(start)
    for _ in range(LONGEST):
        length = length + is_empty(reached & target)
        reached = grow(reached, within)
    return jnp.where(is_empty(reached & target), 0, length)


def toward(start: Array, goal: Array, enterable: Board) -> Array:
    """The first step of the shortest path over enterable cells, as what it adds to the square; STAY if none.

    The goal must be enterable itself, the start need not. The flood comes from the goal and stops
    as soon as it touches neighbours of the start, which are then the ones at the least distance.
    """
    near = grow(bit(start), enterable) - bit(start)
    reached = bit(goal) & enterable
    for _ in range(LONGEST - 1):
        touched = ~is_empty(reached & near)
        reached = choose(touched, reached, grow(reached, enterable))
    return jnp.where(start == goal, STAY, first_way(start, reached & near))


def first_way(start: Array, ends: Board) -> Array:
    """The first direction, in order, that leads from the start into a set; STAY if none does."""
    here, step = bit(start), jnp.full_like(start, STAY)
    for move, change in reversed(list(zip(MOVES, STEPS, strict=True))):
        step = jnp.where(is_empty(move(here) & ends), step, change)
    return step


def is_connected(blocks: Board, exit_at: Array) -> Array:
    """Whether (0,0) reaches every cell that is no block, without passing through an exit other than itself."""
    within = full() - blocks
    dead_end = bit(exit_at) - bit(jnp.zeros_like(exit_at))
    reached = bit(jnp.zeros_like(exit_at)) & within
    for _ in range(LONGEST):
        reached = reached | grow(reached - dead_end, within)
    return is_empty(within - reached)


def is_siphonable(blocks: Board) -> Array:
    """Whether beside every block there is a cell that is none."""
    return is_empty(blocks - grow(full() - blocks, full()))
