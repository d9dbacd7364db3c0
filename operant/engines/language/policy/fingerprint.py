"""Fingerprints of weights: exact sums of their bits, computed where they lie, by which two holders are compared.

The words of a tensor are added up by rows and by columns, modulo 2^32, and each row's and column's sum counts with an
odd weight of its own. A changed bit therefore always changes both sums of the tensor, and whatever else happens by
accident changes them but once in 2^64 times. It reads every weight twice and needs no memory for copies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from operant.engines.language.policy.weights import vocabulary_size

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from operant.engines.language.policy.model import Policy

_WORDS = {2: torch.int16, 4: torch.int32}


@dataclass(frozen=True)
class Fingerprint:
    """For every tensor by its plain name its precision and the sum of its bits, and a digest of the tokenizer."""

    sums: Mapping[str, tuple[str, int]]
    tokenizer: str

    def differing(self, other: Fingerprint) -> list[str]:
        """The names of tensors that are not the same in both, or only in one."""
        names = sorted(self.sums.keys() | other.sums.keys())
        return [name for name in names if self.sums.get(name) != other.sums.get(name)]

    @property
    def precisions(self) -> dict[str, str]:
        """The precision of every tensor."""
        return {name: precision for name, (precision, _) in self.sums.items()}


def fingerprint(
    weights: Iterable[tuple[str, Tensor]],
    policy: Policy,
    precisions: Mapping[str, str] | None = None,
) -> Fingerprint:
    """The fingerprint of named weights, each as it would be in the precision given for it."""
    names: list[str] = []
    kinds: list[str] = []
    sums: list[Tensor] = []
    for name, weight in weights:
        kind = (precisions or {}).get(name)
        cast = weight if kind is None else weight.to(getattr(torch, kind))
        names.append(name)
        kinds.append(str(cast.dtype).removeprefix("torch."))
        sums += word_sums(cast)
    folded = fold(sums)
    pairs = zip(folded[::2], folded[1::2], strict=True)
    facts = zip(names, zip(kinds, (rows << 32 | columns for rows, columns in pairs), strict=True), strict=True)
    return Fingerprint(dict(facts), tokenizer_digest(policy))


@torch.no_grad()
def word_sums(weight: Tensor) -> tuple[Tensor, Tensor]:
    """The sums of a tensor's words by rows and by columns, on its device; how it lies in memory does not matter."""
    kind = _WORDS.get(weight.element_size())
    words = weight.contiguous().view(torch.uint8) if kind is None else weight.view(kind)
    rows = words.flatten(1) if words.dim() > 1 else words[None]
    return rows.sum(1, dtype=torch.int32), rows.sum(0, dtype=torch.int32)


def fold(sums: Sequence[Tensor]) -> list[int]:
    """Each vector of sums as one number of 32 bits: its places count with odd weights.

    All are folded together, and come to the host together, since there are many and most are small.
    """
    whole = torch.cat(list(sums)).to(torch.int64)
    lengths = torch.tensor([len(each) for each in sums]).to(whole.device)
    ends = lengths.cumsum(0)
    places = torch.arange(len(whole), device=whole.device) - (ends - lengths).repeat_interleave(lengths)
    running = (whole * (2 * places + 1)).cumsum(0)[ends - 1]
    return [total % 2**32 for total in running.diff(prepend=running.new_zeros(1)).tolist()]


_DIGESTS: WeakKeyDictionary[PreTrainedTokenizerBase, str] = WeakKeyDictionary()


def tokenizer_digest(policy: Policy) -> str:
    """A digest of which number means which token, of those that the model can write; once for each tokenizer."""
    if policy.tokenizer not in _DIGESTS:
        size = vocabulary_size(policy.model)
        known = sorted((number, token) for token, number in policy.tokenizer.get_vocab().items() if number < size)
        _DIGESTS[policy.tokenizer] = hashlib.blake2b(repr(known).encode(), digest_size=16).hexdigest()
    return _DIGESTS[policy.tokenizer]
