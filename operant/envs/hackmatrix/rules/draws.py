"""Addressed draws: a random word is a function of the key, the event number and an address."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


class Source(NamedTuple):
    """Where the words of one event come from."""

    high: Array  # the two words of the key
    low: Array
    event: Array

    def after(self) -> Source:
        """The source of the next event."""
        return self._replace(event=self.event + 1)

    def before(self) -> Source:
        """The source of the event before."""
        return self._replace(event=self.event - 1)

    def u32(self, address: Array | int) -> Array:
        """The word at an address of this event; addresses along a new first axis broadcast."""
        counter = jnp.asarray(address, jnp.uint32)
        return threefry((self.high, self.low), (self.event.astype(jnp.uint32), counter))[0]

    def pick(self, address: Array | int, n: Array | int) -> Array:
        """A whole number from 0 to n - 1."""
        return scaled(self.u32(address), n)


def threefry(key: tuple[Array, Array], counter: tuple[Array, Array]) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds (Salmon et al., 2011), elementwise so that it fuses with what uses it."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ _PARITY)
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    for group in range(5):
        for turn in _ROTATIONS[group % 2]:
            x = x + y
            y = (y << turn | y >> 32 - turn) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + jnp.uint32(group + 1)
    return x, y


def scaled(word: Array, n: Array | int) -> Array:
    """`word * n >> 32` for n up to 65535, without 64-bit numbers."""
    n = jnp.asarray(n).astype(jnp.uint32)
    return (((word >> 16) * n + ((word & 0xFFFF) * n >> 16)) >> 16).astype(jnp.int32)
