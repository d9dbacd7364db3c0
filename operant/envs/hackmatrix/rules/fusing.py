"""How the work is cut into passes over memory.

A compiler that fuses everything into everything repeats a long computation in each pass that uses its
result, and for each slot of a list. Two habits keep it in bounds: what is long and used widely is
`settled` in memory first, and what compares all slots of a list with each other goes through the
slots in a loop, a few at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import jax.numpy as jnp
from jax import Array, lax

Carried = TypeVar("Carried")
UNROLLED = 4  # slots to a round of a loop
LONG = 32


def column(values: Sequence[int], like: Array) -> Array:
    """Constants along the first axis, shaped to meet arrays of the environments' axes of `like`."""
    return jnp.asarray(values, jnp.int32).reshape((len(values),) + (1,) * like.ndim)


def settled(words: Array) -> Array:
    """The same words, computed once: a barrier, for which processors need a window over single elements."""
    return lax.platform_dependent(words, cpu=_through_a_window, default=lax.optimization_barrier)


def _through_a_window(words: Array) -> Array:
    window, ones = (2, *(1 for _ in words.shape)), (1,) * (words.ndim + 1)
    padding = ((1, 0), *((0, 0) for _ in words.shape))
    return lax.reduce_window(words[None], jnp.zeros((), words.dtype), lax.bitwise_or, window, ones, padding)[0]


def fold(operation: Callable[[Array, Array], Array], values: Array) -> Array:
    """All slots combined by an operation for which 0 changes nothing; halving a long list saves two passes."""
    if len(values) > LONG:
        half = len(values) // 2
        values = operation(values[:half], values[half:])
    return lax.reduce(values, jnp.zeros((), values.dtype), operation, (0,))


def fold_or(words: Array) -> Array:
    """Bitwise or of all slots."""
    return fold(lax.bitwise_or, words)


def total(values: Array) -> Array:
    """The sum over all slots."""
    return fold(lax.add, values.astype(jnp.int32))


def each_slot(number: int, one: Callable[[Array, Carried], Carried], start: Carried) -> Carried:
    """Apply `one` for slot 0, 1, .."""
    return lax.fori_loop(0, number, one, start, unroll=UNROLLED)


def is_first(values: Array, counted: Array) -> Array:
    """By slot: whether no counted slot before it has the same value."""
    index = column(range(len(values)), values[0])

    def one(slot: Array, repeated: Array) -> Array:
        return repeated | counted[slot] & (values == values[slot]) & (index > slot)

    return ~each_slot(len(values), one, jnp.zeros(values.shape, bool))


def compact(words: Array, alive: Array, number: int) -> Array:
    """The first `number` words that are alive, in order; 0 beyond the last of them."""
    index = column(range(number), words[0])

    def one(slot: Array, carried: tuple[Array, Array]) -> tuple[Array, Array]:
        packed, before = carried
        here = alive[slot] & (index == before)
        return jnp.where(here, words[slot], packed), before + alive[slot]

    nothing = jnp.zeros((number, *words.shape[1:]), words.dtype)
    return each_slot(len(words), one, (nothing, jnp.zeros(words.shape[1:], jnp.int32)))[0]


def places(priority: Array, counted: Array) -> Array:
    """By slot: how many counted slots come before it in ascending order, the lower slot first on ties."""
    index = column(range(len(priority)), priority[0])

    def one(slot: Array, place: Array) -> Array:
        earlier = (priority[slot] < priority) | (priority[slot] == priority) & (index > slot)
        return place + (counted[slot] & earlier)

    return each_slot(len(priority), one, jnp.zeros(priority.shape, jnp.int32))


def first_at(squares: Array, at: Array, alive: Array, looks: Array) -> Array:
    """By square: the looks of the first living slot on it, which are never 0; 0 if there is none."""

    def one(slot: Array, found: Array) -> Array:
        return jnp.where((found == 0) & alive[slot] & (squares == at[slot]), looks[slot], found)

    return each_slot(len(looks), one, jnp.zeros((len(squares), *looks.shape[1:]), looks.dtype))
