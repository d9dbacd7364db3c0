"""Prioritised replay inside the program (Schaul et al., 2016): transitions with large errors are sampled more often.

Slots lie in blocks of about the root of their number. A draw picks a block by the sums of all blocks and then a slot
in it: two short cumulative sums, where a tree would be a loop of scattered reads.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from operant.spec.settings.memories import PrioritisedReplaySpec


class Priorities(NamedTuple):
    """The priority (|error| + epsilon)^alpha of every slot [N, C], and the largest there ever was [N]."""

    slots: Array
    largest: Array


def init(count: int, length: int) -> Priorities:
    """Priorities of an empty buffer."""
    return Priorities(jnp.zeros((count, length)), jnp.ones(count))


def add(priorities: Priorities, slot: Array) -> Priorities:
    """New transitions in these slots [N] get the largest priority, so that each is likely to be used once."""
    every = jnp.arange(len(slot))
    return priorities._replace(slots=priorities.slots.at[every, slot].set(priorities.largest))


def draw(priorities: Priorities, ready: Array, chance: Array, beta: Array) -> tuple[Array, Array]:
    """Indices by stratified sampling with numbers `chance` [B] from 0 to 1, and importance weights.

    The weights are (count p)^-beta, scaled so that the largest of the batch is 1.
    """
    slots = jnp.where(ready, priorities.slots, 0.0)
    total, size = slots.sum(), len(chance)
    index = weighted_draw(slots, (jnp.arange(size) + chance) * (total / size))
    weight = (ready.sum() * slots.reshape(-1)[index] / total) ** -beta
    return index, weight / weight.max()


def update(priorities: Priorities, index: Array, error: Array, memory: PrioritisedReplaySpec) -> Priorities:
    """Sampled transitions with the priorities of their new temporal-difference errors [B]."""
    found = (jnp.abs(error) + memory.epsilon) ** memory.alpha
    length = priorities.slots.shape[1]
    slots = priorities.slots.at[index // length, index % length].set(found)
    return Priorities(slots, jnp.maximum(priorities.largest, found.max()))


def weighted_draw(weight: Array, mass: Array) -> Array:
    """For each of the numbers `mass` [B] from 0 to the sum of all weights: where the running sum passes it.

    Nothing of weight 0 is ever drawn.
    """
    flat = weight.reshape(-1)
    width = math.isqrt(flat.size - 1) + 1
    blocks = jnp.pad(flat, (0, -flat.size % width)).reshape(-1, width)
    sums = blocks.sum(1)
    ends = jnp.cumsum(sums)
    block = _passes(ends[None], sums[None], mass)
    inside = blocks[block]
    return block * width + _passes(jnp.cumsum(inside, 1), inside, mass - (ends - sums)[block])


def _passes(ends: Array, weight: Array, mass: Array) -> Array:
    """The first part with any weight whose end lies above the mass; the last one where rounding leaves none."""
    weighs = weight > 0
    found = weighs & (ends > mass[:, None])
    last = weight.shape[1] - 1 - jnp.argmax(weighs[:, ::-1], 1)
    return jnp.where(found.any(1), jnp.argmax(found, 1), last).astype(jnp.int32)
