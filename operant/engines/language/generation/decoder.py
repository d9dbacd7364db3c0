"""Decoders: they read prompts into a cache of keys and values, and give the logits of one more token for many rows.

The lean decoder computes Llama-like models with as few kernels as it can, from the model's own weights; every
other model goes through its own `forward` (see `fallback.py`). Both keep the same cache.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from operant.engines.language.generation.activation_cache import ActivationCache, Kind
from operant.engines.language.policy.weights import LayerWeights, LeanWeights, lean_weights

BLOCK = 32
"""The cache grows, and attention looks at it, in pieces of so many tokens."""


@dataclass(frozen=True)
class Prefilled:
    """Prompts that were read: the next token's logits; keys and values [layers, 2, prompts, heads, length, width].

    `rows` [prompts, length] says where an `ActivationCache` has their tokens, if it keeps them.
    """

    cache: Tensor
    logits: Tensor
    rows: Tensor | None = None


class Decoder(ABC):
    """A model with a cache of `slots` rows (abstract). The rows in use are always the first ones."""

    def __init__(self, model: nn.Module, slots: int, length: int) -> None:
        self.model = model
        self.slots = slots
        self.length = length
        self.cache = torch.empty(0)

    @abstractmethod
    def refresh(self) -> None:
        """Take note that the model's weights have changed."""

    @abstractmethod
    def held(self) -> Iterable[tuple[str, Tensor]]:
        """The weights that it computes with, by their plain names."""

    @abstractmethod
    def prefill(self, tokens: Tensor, lengths: Tensor) -> Prefilled:
        """Read prompts, padded on the right."""

    @abstractmethod
    def step(self, tokens: Tensor, positions: Tensor, columns: int) -> Tensor:
        """The logits [rows, vocabulary] after one more token in each of the first rows.

        A row's token is written at its position; attention looks at the first `columns` of the cache.
        """

    def admit(self, rows: Tensor, read: Prefilled, which: Tensor) -> None:
        """Copy the prompts `which` into the rows."""
        if self.cache.numel() == 0:
            layers, two, _, heads, _, width = read.cache.shape
            size = (layers, two, self.slots, heads, self.length, width)
            # Zeros, because what is masked is still multiplied, and memory may hold what is not a number.
            self.cache = torch.zeros(size, dtype=read.cache.dtype, device=read.cache.device)
        length = read.cache.shape[4]
        for layer in range(self.cache.shape[0]):
            self.cache[layer, :, :, :, :length].index_copy_(1, rows, read.cache[layer].index_select(1, which))

    def move(self, source: Tensor, target: Tensor) -> None:
        """Copy rows over others that are no longer needed."""
        self.cache[:, :, target] = self.cache[:, :, source]


class LeanDecoder(Decoder):
    """Llama, Qwen2, Qwen3 and their kin (final).

    With an `activation_cache` it stores the outputs of the linear layers there; `where` [slots, length] has the rows of
    its tokens.
    """

    def __init__(self, model: nn.Module, slots: int, length: int) -> None:
        super().__init__(model, slots, length)
        self.weights = lean_weights(model)
        self.cos, self.sin = rotary_tables(self.weights, length)
        self.columns = torch.arange(length, device=self.cos.device)
        self.rows = torch.arange(slots, device=self.cos.device)
        self.activation_cache: ActivationCache | None = None
        self.where = torch.zeros((slots, length), dtype=torch.int64)

    def refresh(self) -> None:
        """Fuse the weights anew."""
        self.weights.refresh()

    def held(self) -> Iterable[tuple[str, Tensor]]:
        """The fused weights, taken apart again, and those read in place."""
        return self.weights.held(self.model)

    def prefill(self, tokens: Tensor, lengths: Tensor) -> Prefilled:
        """Read prompts with causal attention; what stands after a prompt's end is never looked at."""
        prompts, length = tokens.shape
        shape = self.weights.shape
        kept_at = (
            None if self.activation_cache is None else self.activation_cache.take(tokens.numel()).view(prompts, length)
        )
        cos, sin = self.cos[:length].repeat(prompts, 1, 1), self.sin[:length].repeat(prompts, 1, 1)
        kept: list[Tensor] = []

        def attend(layer: int, qkv: Tensor) -> Tensor:
            del layer
            rows = qkv.view(prompts, length, -1, shape.head_width).transpose(1, 2)
            query, key, value = rows.split([shape.heads, shape.kv_heads, shape.kv_heads], 1)
            kept.append(torch.stack([key, value]))
            grouped = shape.heads != shape.kv_heads
            found = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=grouped)
            return found.transpose(1, 2).reshape(prompts * length, -1)

        hidden = self._layers(self.weights.embedding[tokens.flatten()], cos, sin, attend)
        last = hidden.view(prompts, length, -1)[torch.arange(prompts, device=tokens.device), lengths - 1]
        return Prefilled(torch.stack(kept), last @ self.weights.head, kept_at)

    def step(self, tokens: Tensor, positions: Tensor, columns: int) -> Tensor:
        """One token for each row."""
        rows = tokens.shape[0]
        shape = self.weights.shape
        at = self.rows[:rows]
        if self.activation_cache is not None:
            self.where[at, positions] = self.activation_cache.take(rows)
        hidden = functional.embedding(tokens, self.weights.embedding)
        visible = self.columns[:columns] <= positions[:, None]
        mask = torch.zeros(visible.shape, dtype=hidden.dtype, device=hidden.device).masked_fill_(
            ~visible, float("-inf")
        )
        # Query heads that share keys stand as several queries of one head, so that keys are never repeated.
        sharing = shape.heads // shape.kv_heads
        mask = mask[:, None, None, :].expand(rows, 1, sharing, columns)

        def attend(layer: int, qkv: Tensor) -> Tensor:
            cache = self.cache[layer, :, :rows]
            cache[:, at, :, positions] = qkv[:, shape.heads :].view(rows, 2, shape.kv_heads, shape.head_width)
            query = qkv[:, : shape.heads].view(rows, shape.kv_heads, sharing, shape.head_width)
            past = cache[:, :, :, :columns]
            found = functional.scaled_dot_product_attention(query, past[0], past[1], attn_mask=mask)
            return found.reshape(rows, -1)

        cos, sin = self.cos[positions], self.sin[positions]
        return self._layers(hidden, cos, sin, attend) @ self.weights.head

    def move(self, source: Tensor, target: Tensor) -> None:
        """Copy rows over others, and where they are kept."""
        super().move(source, target)
        if self.activation_cache is not None:
            self.where[target] = self.where[source]

    def _layers(self, hidden: Tensor, cos: Tensor, sin: Tensor, attend) -> Tensor:
        """All layers and the last norm; `hidden` is [tokens, width]."""
        width, epsilon = hidden.shape[-1:], self.weights.shape.epsilon
        for index, layer in enumerate(self.weights.layers):
            qkv = self._rotated(functional.rms_norm(hidden, width, layer.norm_in, epsilon), index, layer, cos, sin)
            hidden = self._added(hidden, attend(index, qkv), index, "out", layer.out)
            gate, up = self._gate_up(functional.rms_norm(hidden, width, layer.norm_mlp, epsilon), index, layer)
            hidden = self._added(hidden, functional.silu(gate).mul_(up), index, "down", layer.down)
        return functional.rms_norm(hidden, width, self.weights.norm, epsilon)

    def _added(self, hidden: Tensor, inputs: Tensor, layer: int, kind: Kind, weight: Tensor) -> Tensor:
        """The hidden states with the product of `inputs` added."""
        if self.activation_cache is None:
            return torch.addmm(hidden, inputs, weight)
        return hidden + self.activation_cache.product(layer, kind, inputs, weight)

    def _gate_up(self, hidden: Tensor, index: int, layer: LayerWeights) -> tuple[Tensor, ...]:
        if self.activation_cache is None:
            return (hidden @ layer.gate_up).chunk(2, -1)
        return self.activation_cache.product(index, "gate_up", hidden, layer.gate_up).chunk(2, -1)

    def _rotated(self, hidden: Tensor, index: int, layer: LayerWeights, cos: Tensor, sin: Tensor) -> Tensor:
        """Queries, keys and values [tokens, heads, width]; the first two rotated, and normed if the model does so."""
        shape = self.weights.shape
        flat = self._unrotated(hidden, index, layer)
        qkv = flat.view(hidden.shape[0], -1, shape.head_width)
        turning = qkv[:, : shape.heads + shape.kv_heads]
        if layer.qk_norm is not None:
            turning.copy_(functional.rms_norm(turning, turning.shape[-1:], None, shape.epsilon) * layer.qk_norm)
        swapped = turning.roll(shape.head_width // 2, -1)
        turning.mul_(cos).addcmul_(swapped, sin)
        return qkv

    def _unrotated(self, hidden: Tensor, index: int, layer: LayerWeights) -> Tensor:
        """The same as the linear layer gives them, in memory that may be changed."""
        if self.activation_cache is not None:
            return self.activation_cache.product(index, "qkv", hidden, layer.qkv, layer.qkv_bias).clone()
        return hidden @ layer.qkv if layer.qkv_bias is None else torch.addmm(layer.qkv_bias, hidden, layer.qkv)


def rotary_tables(weights: LeanWeights, length: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines [length, 1, width] of every position, the sines signed for a half turn of the vector."""
    positions = torch.arange(length, device=weights.norm.device)[None]
    with torch.no_grad():
        cos, sin = weights.rotary(weights.norm, positions)
    half = sin.shape[-1] // 2
    sin = torch.cat([-sin[..., :half], sin[..., half:]], -1)
    return cos[0, :, None].contiguous(), sin[0, :, None].contiguous()
