"""How the work is cut into passes over memory.

A compiler that fuses everything into everything repeats a long computation in each pass that uses its
result, and for each slot of a list. Two habits keep it in bounds: what is long and used widely is
`settled` in memory first, and what compares all slots of a list with each other goes through the
slots one by one in a single pass over the environments.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from operant.envs.hackmatrix.compiled.bits import column


def settled(words: Array) -> Array:
    """The same words, computed once: processors get a window over one element, which their fusion stops at.

    Elsewhere the compiler weighs the cost of repetition itself.
    """
    return lax.platform_dependent(words, cpu=_through_a_window, default=lambda same: same)


def _through_a_window(words: Array) -> Array:
    window, ones = (2, *(1 for _ in words.shape)), (1,) * (words.ndim + 1)
    padding = ((1, 0), *((0, 0) for _ in words.shape))
    return lax.reduce_window(words[None], jnp.zeros((), words.dtype), lax.bitwise_or, window, ones, padding)[0]


def is_first(values: Array, counted: Array) -> Array:
    """By slot: whether no counted slot before it has the same value."""
    index = column(range(len(values)), values[0])
    repeated = jnp.zeros(values.shape, bool)
    for slot in range(len(values) - 1):
        repeated = repeated | counted[slot] & (values == values[slot]) & (index > slot)
    return ~repeated


def compact(words: Array, alive: Array, number: int) -> Array:
    """The first `number` words that are alive, in order; 0 beyond the last of them."""
    index = column(range(number), words[0])
    packed = jnp.zeros((number, *words.shape[1:]), words.dtype)
    before = jnp.zeros(words.shape[1:], jnp.int32)
    for slot in range(len(words)):
        packed = jnp.where(alive[slot] & (index == before), words[slot], packed)
        before = before + alive[slot]
    return packed


def places(priority: Array, counted: Array) -> Array:
    """By slot: how many counted slots come before it in ascending order, the lower slot first on ties."""
    index = column(range(len(priority)), priority[0])
    place = jnp.zeros(priority.shape, jnp.int32)
    for slot in range(len(priority)):
        earlier = (priority[slot] < priority) | (priority[slot] == priority) & (index > slot)
        place = place + (counted[slot] & earlier)
    return place


def first_at(squares: Array, at: Array, alive: Array, looks: Array) -> Array:
    """By square: the looks of the first living slot on it, 0 if there is none."""
    found = jnp.zeros((len(squares), *looks.shape[1:]), looks.dtype)
    for slot in reversed(range(len(looks))):
        found = jnp.where(alive[slot] & (squares == at[slot]), looks[slot], found)
    return found
