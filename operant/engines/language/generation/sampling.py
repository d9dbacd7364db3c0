"""Drawing tokens: one number of chance for each row and place, which depends on nothing that runs beside it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from operant.engines.language.generation.generator import Prompt, Sampling
from operant.engines.language.policy.sampling_mask import pack
from operant.errors import UsageError

SMALLEST = 1e-6
"""The smallest temperature but 0, and the smallest top_p: far below, logits overflow and every token is left out."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def check_sampling(sampling: Sampling) -> None:
    """Refuse settings that no completion can be drawn with."""
    if sampling.n < 1:
        raise UsageError(f"a prompt needs at least 1 completion, not {sampling.n}")
    if sampling.temperature < 0:
        raise UsageError(f"a temperature of {sampling.temperature} is below 0")
    if sampling.temperature != 0 and not SMALLEST <= sampling.temperature < math.inf:
        raise UsageError(f"a temperature of {sampling.temperature} is not 0, and not from {SMALLEST} on")
    if not SMALLEST <= sampling.top_p <= 1:
        raise UsageError(f"top_p is {sampling.top_p}, which is not from {SMALLEST} to 1")
    if sampling.top_k < 0:
        raise UsageError(f"top_k is {sampling.top_k}; 0 takes every token")
    if not 0 <= sampling.min_p <= 1:
        raise UsageError(f"min_p is {sampling.min_p}, which is not from 0 to 1")


def check_room(prompts: Sequence[Prompt], context: int) -> None:
    """Refuse prompts that are empty, or that leave no room for their completions."""
    for number, prompt in enumerate(prompts):
        if not prompt.tokens:
            raise UsageError(f"prompt {number} has no tokens")
        if prompt.max_tokens < 1:
            raise UsageError(f"prompt {number} asks for {prompt.max_tokens} tokens")
        if len(prompt.tokens) + prompt.max_tokens > context:
            raise UsageError(
                f"prompt {number} has {len(prompt.tokens)} tokens and asks for {prompt.max_tokens}, "
                f"which is more than the model's context of {context}",
                remedy="make max_tokens smaller, or leave long prompts out",
            )


def prompt_key(seed: int, prompt: Prompt) -> int:
    """A number for a prompt under a seed."""
    salted = [seed, *prompt.tokens, -prompt.salt] if prompt.salt else [seed, *prompt.tokens]
    digest = hashlib.blake2b(np.asarray(salted, dtype=np.int64).tobytes(), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


def chances(keys: Sequence[int], places: int) -> np.ndarray:
    """Uniform numbers [keys, places] in [0, 1): a counter-based generator (SplitMix64; Steele, Lea, Flood 2014)."""
    counters = np.arange(1, places + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        state = np.asarray([key % 2**64 for key in keys], dtype=np.uint64)[:, None] + counters * _GOLDEN
        state = (state ^ (state >> np.uint64(30))) * _MIX[0]
        state = (state ^ (state >> np.uint64(27))) * _MIX[1]
        state ^= state >> np.uint64(31)
    return ((state >> np.uint64(40)).astype(np.float32) * np.float32(2**-24)).astype(np.float32)


def draw(logits: Tensor, chance: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor, Tensor | None]:
    """A token for each row of logits, and its log-probability under the whole distribution at the temperature.

    Where the sampling keeps masks, the distribution is that over the tokens kept, and their packed bits come third.
    """
    scaled = logits.float()
    if sampling.temperature not in (0.0, 1.0):
        scaled = scaled / sampling.temperature
    logprobs = torch.log_softmax(scaled, -1)
    if sampling.temperature == 0:
        tokens = logprobs.argmax(-1)
        return tokens, logprobs.gather(1, tokens[:, None])[:, 0], None
    weights = _kept(logprobs, sampling)
    tokens = _inverse(weights, chance)
    mask = None
    if sampling.masks:
        kept = weights > 0
        logprobs, mask = torch.log_softmax(scaled.masked_fill(~kept, -torch.inf), -1), pack(kept)
    return tokens, logprobs.gather(1, tokens[:, None])[:, 0], mask


def _inverse(weights: Tensor, chance: Tensor) -> Tensor:
    """The first token at which the running sum of weights passes `chance` of their whole."""
    running = weights.cumsum(-1)
    target = (chance * running[:, -1])[:, None]
    found = torch.searchsorted(running, target, right=True)[:, 0]
    # Rounding may put the target on the whole sum itself; then the last token that has any weight is meant.
    last = torch.searchsorted(running, running[:, -1:].contiguous())[:, 0]
    return torch.minimum(found, last)


def _kept(logprobs: Tensor, sampling: Sampling) -> Tensor:
    """Probabilities, those outside top_k, top_p and min_p set to zero."""
    weights = logprobs.exp()
    if sampling.top_k and sampling.top_k < weights.shape[-1]:
        least = weights.topk(sampling.top_k, -1).values[:, -1:]
        weights = weights.masked_fill(weights < least, 0.0)
    if sampling.top_p < 1:
        ordered, order = weights.sort(-1, descending=True)
        before = ordered.cumsum(-1) - ordered
        ordered = ordered.masked_fill(before >= sampling.top_p * ordered.sum(-1, keepdim=True), 0.0)
        weights = torch.zeros_like(weights).scatter_(-1, order, ordered)
    if sampling.min_p:
        weights = weights.masked_fill(weights < sampling.min_p * weights.amax(-1, keepdim=True), 0.0)
    return weights
