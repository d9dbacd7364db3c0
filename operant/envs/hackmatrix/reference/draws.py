"""Addressed draws: every random choice has an address, so the order of evaluation does not matter."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_WORD = 0xFFFFFFFF


def threefry(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    """Threefry-2x32 with 20 rounds (Salmon et al., 2011): two 32-bit words from two."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ _PARITY)
    left = counter[0] + keys[0] & _WORD
    right = counter[1] + keys[1] & _WORD
    for group in range(5):
        for turn in _ROTATIONS[group % 2]:
            left = left + right & _WORD
            right = (right << turn | right >> 32 - turn) & _WORD ^ left
        left = left + keys[(group + 1) % 3] & _WORD
        right = right + keys[(group + 2) % 3] + group + 1 & _WORD
    return left, right


class Source(ABC):
    """Where random words come from: a function of the event number and an address. Subclasses are final."""

    event: int = 0

    @abstractmethod
    def u32(self, address: int) -> int:
        """The word at `address` of the present event, 0 to 2^32 - 1."""

    def pick(self, address: int, n: int) -> int:
        """A whole number from 0 to n - 1."""
        return self.u32(address) * n >> 32


class Threefry(Source):
    """The draws of a seed; without one, of a key from the operating system."""

    def __init__(self, seed: int | None = None) -> None:
        number = secrets.randbits(64) if seed is None else seed % 2**64
        self.key = (number >> 32, number & _WORD)

    def u32(self, address: int) -> int:
        return threefry(self.key, (self.event, address))[0]
