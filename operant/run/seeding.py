"""Named, independent streams of randomness from one integer.

A stream is identified by (seed, name, indices) and by nothing else: adding a stream, or drawing more
from one, never shifts another. The identity is hashed with SHA-256, so streams are the same on
every machine and in every version.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

LEAST_RESERVED = 1000


class Seeds:
    """The streams of one session."""

    __slots__ = ("seed",)

    def __init__(self, seed: int) -> None:
        self.seed = int(seed)

    def rng(self, name: str, *index: int) -> np.random.Generator:
        """A fresh generator at the start of the stream."""
        import numpy as np

        entropy = int.from_bytes(self._digest("rng", name, index), "little")
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))

    def integer(self, name: str, *index: int) -> int:
        """A seed in [0, 2**31) for something that brings its own generator, such as one environment episode."""
        return int.from_bytes(self._digest("int", name, index)[:4], "little") >> 1

    def _digest(self, use: str, name: str, index: tuple[int, ...]) -> bytes:
        # The length in front of the name keeps different identities from spelling the same text.
        identity = f"{use}:{self.seed}:{len(name)}:{name}:{','.join(map(str, index))}"
        return hashlib.sha256(identity.encode()).digest()


def reserved_seeds(eval_seed: int, eval_episodes: int, final_episodes: int) -> range:
    """The seeds that evaluation has for itself: those that a spec plays on, and further ones for `operant eval`."""
    return range(eval_seed, eval_seed + max(LEAST_RESERVED, eval_episodes, final_episodes))


class EpisodeSeeds:
    """The seeds of a session's training episodes, none of which is `reserved` for evaluation.

    A seed is drawn by hashing, so it may fall anywhere; one that falls among the reserved ones is
    drawn again, until it does not.
    """

    def __init__(self, seeds: Seeds, reserved: range) -> None:
        self._seeds = seeds
        self._reserved = reserved

    def __call__(self, env: int, episode: int) -> int:
        """The seed of an episode of one environment, both counted from 0."""
        seed, again = self._seeds.integer("env", env, episode), 0
        while seed in self._reserved:
            again += 1
            seed = self._seeds.integer("env", env, episode, again)
        return seed


def rng_state(generator: np.random.Generator) -> dict[str, Any]:
    """Where a generator stands, as JSON-able data."""
    return _plain(generator.bit_generator.state)


def _plain(value: Any) -> Any:
    """Arrays as lists; every other part of a generator's state is JSON-able already."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value
