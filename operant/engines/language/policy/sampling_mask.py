"""Sampling masks: which tokens top_k, top_p and min_p left to draw from, at every place of a completion.

The trainer's log-probabilities are renormalised over the very same tokens. To choose them again from its own logits
would not do: a token at the edge falls to the other side by rounding, and after a step by right.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class SamplingMask:
    """A bit for each token of the vocabulary in each of `places` places, compressed: most masks keep few tokens."""

    data: bytes
    places: int

    @staticmethod
    def of(packed: np.ndarray) -> SamplingMask:
        """The mask of rows of packed bits [places, bytes], as `pack` makes them."""
        return SamplingMask(zlib.compress(np.ascontiguousarray(packed).tobytes(), 1), len(packed))

    @staticmethod
    def of_tokens(kept: Sequence[Iterable[int]], vocabulary: int) -> SamplingMask:
        """The mask that keeps the tokens listed for each place."""
        whole = np.zeros((len(kept), packed_width(vocabulary) * 8), dtype=bool)
        for row, tokens in zip(whole, kept, strict=True):
            row[list(tokens)] = True
        return SamplingMask.of(np.packbits(whole, axis=1, bitorder="little"))

    def packed(self) -> np.ndarray:
        """Rows of packed bits [places, bytes]."""
        return np.frombuffer(zlib.decompress(self.data), dtype=np.uint8).reshape(self.places, -1)


def packed_width(vocabulary: int) -> int:
    """How many bytes hold a bit for each token."""
    return -(-vocabulary // 8)


def pack(kept: Tensor) -> Tensor:
    """Booleans [rows, vocabulary] as bits [rows, bytes], the first token in the lowest bit; works in a CUDA graph."""
    rows, vocabulary = kept.shape
    padded = torch.nn.functional.pad(kept.to(torch.uint8), (0, packed_width(vocabulary) * 8 - vocabulary))
    shifts = torch.arange(8, dtype=torch.uint8, device=kept.device)
    return (padded.view(rows, -1, 8) << shifts).sum(-1, dtype=torch.uint8)


def unpack(packed: Tensor, vocabulary: int) -> Tensor:
    """The booleans [rows, vocabulary] of bits; a model with more tokens than the mask knows keeps none of those."""
    shifts = torch.arange(8, dtype=torch.uint8, device=packed.device)
    kept = ((packed[:, :, None] >> shifts) & 1).flatten(1).bool()
    return torch.nn.functional.pad(kept, (0, max(0, vocabulary - kept.shape[1])))[:, :vocabulary]
