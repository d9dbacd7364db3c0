"""Where the blocks of a stage go: attempts at random, several at once, until one is valid for every environment."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from operant.envs.hackmatrix.constants import AT_ATTEMPT, AT_BLOCKS, BLOCK_ATTEMPTS, MAX_BLOCKS, MIN_BLOCKS
from operant.envs.hackmatrix.rules.bits import Board, bit, count, nth, only, union
from operant.envs.hackmatrix.rules.draws import Source, scaled
from operant.envs.hackmatrix.rules.fusing import column, settled
from operant.envs.hackmatrix.rules.paths import is_connected, is_siphonable

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
    number = settled(jnp.minimum(MIN_BLOCKS + source.pick(AT_BLOCKS, MAX_BLOCKS - MIN_BLOCKS + 1), most))

    def unfinished(search: Search) -> Array:
        return (search.made < BLOCK_ATTEMPTS) & (search.found == NONE_YET).any()

    def some_more(search: Search) -> Search:
        attempts = search.made + column(range(AT_ONCE), most)
        squares = _attempt(source, eligible, most, attempts)
        blocks = union(only((_blocks(most) < number)[:, None], bit(squares)))
        valid = is_connected(blocks, jnp.broadcast_to(exit_at, attempts.shape[:1] + exit_at.shape)) & is_siphonable(
            blocks
        )
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
    return nth(eligible, _shuffled(settled(ends)))


def _shuffled(ends: Array) -> Array:
    """The first entries of 0, 1, 2 .. after exchanging entry b with entry `ends[b]`, for b = 0, 1, ..

    Only exchanged entries differ from their place, so they are remembered instead of the list: what
    an exchange left at `ends[b]` is what had been at b. The latest exchange with a place counts, so
    its number is the high part of what is remembered.
    """
    number = column(range(len(ends)), ends[0])

    def one(b: Array, carried: tuple[Array, Array]) -> tuple[Array, Array]:
        left, taken = carried
        before = number < b
        mine = jnp.where(before & (ends == b), left, b).max(0) & 63
        theirs = jnp.where(before & (ends == ends[b]), left, ends[b]).max(0) & 63
        left = lax.dynamic_update_index_in_dim(left, (b + 1) * 64 + mine, b, 0)
        return left, lax.dynamic_update_index_in_dim(taken, theirs, b, 0)

    return lax.fori_loop(0, len(ends), one, (jnp.zeros_like(ends), jnp.zeros_like(ends)))[1]


def _blocks(like: Array) -> Array:
    return column(range(MAX_BLOCKS), like)
