"""Where the blocks of a stage go: attempts at random, several at once, until one is valid for every environment."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from operant.envs.hackmatrix.compiled.bits import Board, bit, column, count, nth, only, union
from operant.envs.hackmatrix.compiled.draws import Source, scaled
from operant.envs.hackmatrix.compiled.paths import is_connected, is_siphonable
from operant.envs.hackmatrix.constants import AT_ATTEMPT, AT_BLOCKS, BLOCK_ATTEMPTS, MAX_BLOCKS, MIN_BLOCKS

AT_ONCE = 10  # attempts side by side
NONE_YET = BLOCK_ATTEMPTS


class Layout(NamedTuple):
    """Squares of the blocks in the order drawn, of which the first `number` count."""

    squares: Array
    number: Array


class Search(NamedTuple):
    """The attempts made so far, and by environment the first valid one, NONE_YET if there was none."""

    made: Array
    found: Array
    squares: Array


def draw_layout(source: Source, eligible: Board, exit_at: Array) -> Layout:
    """The first valid attempt of a hundred; no blocks at all if there is none."""
    most = count(eligible)
    number = jnp.minimum(MIN_BLOCKS + source.pick(AT_BLOCKS, MAX_BLOCKS - MIN_BLOCKS + 1), most)

    def unfinished(search: Search) -> Array:
        return (search.made < BLOCK_ATTEMPTS) & (search.found == NONE_YET).any()

    def some_more(search: Search) -> Search:
        attempts = search.made + column(range(AT_ONCE), most)
        squares = _attempt(source, eligible, most, attempts)
        blocks = union(only((_blocks(most) < number)[:, None], bit(squares)))
        valid = is_connected(blocks, jnp.broadcast_to(exit_at, attempts.shape[:1] + exit_at.shape)) & is_siphonable(blocks)
        first = jnp.where(valid, attempts, NONE_YET).min(0)
        chosen = jnp.where(attempts == first, squares, 0).sum(1, dtype=jnp.int32)
        is_new = (search.found == NONE_YET) & (first < NONE_YET)
        return Search(
            search.made + AT_ONCE,
            jnp.where(is_new, first, search.found),
            jnp.where(is_new, chosen, search.squares),
        )

    nothing = jnp.zeros((MAX_BLOCKS, *most.shape), jnp.int32)
    start = Search(jnp.int32(0), jnp.full_like(most, NONE_YET), nothing)
    search = lax.while_loop(unfinished, some_more, start)
    return Layout(search.squares, jnp.where(search.found < NONE_YET, number, 0))


def _attempt(source: Source, eligible: Board, most: Array, attempts: Array) -> Array:
    """Squares of the 11 blocks [11, attempts, ..] of partial shuffles of the eligible cells."""
    blocks = _blocks(most)
    words = source.u32(AT_ATTEMPT + 16 * attempts[None] + blocks[:, None])
    ends = blocks[:, None] + scaled(words, jnp.maximum(most - blocks, 1)[:, None])
    drawn = _shuffled([ends[b] for b in range(MAX_BLOCKS)])
    return nth(Board(eligible.low, eligible.high), jnp.stack(drawn))


def _shuffled(ends: list[Array]) -> list[Array]:
    """The first entries of 0, 1, 2 .. after exchanging entry b with entry `ends[b]`, for b = 0, 1, ..

    Only exchanged entries differ from their place, so they are remembered instead of the list: what
    an exchange left at `ends[b]` is what had been at b.
    """
    left: list[Array] = []
    taken: list[Array] = []
    for b, end in enumerate(ends):
        mine, theirs = jnp.full_like(end, b), end
        for place, value in zip(ends[:b], left, strict=True):
            mine = jnp.where(place == b, value, mine)
            theirs = jnp.where(place == end, value, theirs)
        left.append(mine)
        taken.append(theirs)
    return taken


def _blocks(like: Array) -> Array:
    return column(range(MAX_BLOCKS), like)
