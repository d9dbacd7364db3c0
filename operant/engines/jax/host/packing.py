"""The small arrays of a pytree as one: every argument of a compiled program costs its caller a microsecond or two.

A policy acts thousands of times with the same weights and settings, of which there are dozens.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

SMALL = 4096  # numbers; an array of more takes longer to copy than to hand over


class Packing:
    """How a pytree like `example` is packed; it is needed for shapes and dtypes only."""

    def __init__(self, example: Any) -> None:
        leaves, self._structure = jax.tree.flatten(example)
        self._shapes = [leaf.shape if _is_small(leaf) else None for leaf in leaves]

    def pack(self, tree: Any) -> list[Array]:
        """All small arrays as one vector, then the others as they are."""
        leaves = list(zip(jax.tree.leaves(tree), self._shapes, strict=True))
        small = [leaf.reshape(-1) for leaf, shape in leaves if shape is not None]
        return [jnp.concatenate([jnp.zeros(0), *small]), *(leaf for leaf, shape in leaves if shape is None)]

    def unpack(self, packed: list[Array]) -> Any:
        """What `pack` was given."""
        vector, *others = packed
        leaves, place, rest = [], 0, iter(others)
        for shape in self._shapes:
            if shape is None:
                leaves.append(next(rest))
            else:
                size = math.prod(shape)
                leaves.append(vector[place : place + size].reshape(shape))
                place += size
        return jax.tree.unflatten(self._structure, leaves)


def _is_small(leaf: Any) -> bool:
    return leaf.dtype == jnp.float32 and leaf.size <= SMALL
