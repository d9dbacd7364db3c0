"""The activation cache: outputs of linear layers from generation, reused by the trainer while the weights are the same.

The forward pass of a first gradient step repeats what writing the completions has computed, and on a CPU products of
matrices take most of its time. So the lean decoder stores the outputs of all linear layers here, a row for each token
that it reads, and the trainer's pass over the same tokens reads them; everything else, and every gradient, is computed
as ever. Whoever changes a weight has to `clear` the rows.

Some completions and their prompts are computed anew all the same, others in each update: by them generator and trainer
are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from operant.engines.language.policy.batching import Batch, Segment
from operant.engines.language.policy.weights import base_model, supports

Kind = Literal["qkv", "out", "gate_up", "down"]

ROOM = 1 << 30
"""At most so many bytes are kept; a round that may need more is not kept at all."""

WATCHED = 32
"""One completion in so many is computed anew."""


@dataclass(frozen=True)
class CachedRows:
    """What is known of a line of tokens: the row of each (any where there is none), and the places of those `anew`.

    `watched` are the samples that are computed anew from their prompt's first token on.
    """

    rows: Tensor
    anew: Tensor
    watched: Tensor


class ActivationCache:
    """Outputs of the linear layers of a model that `can_cache_activations` accepts, by the tokens read (final)."""

    def __init__(self, model: nn.Module) -> None:
        self.linears = [_linears(layer) for layer in base_model(model).model.layers]
        first = self.linears[0].items()
        self.widths: dict[Kind, int] = {kind: sum(each.out_features for each in group) for kind, group in first}
        self.recording = False
        self.clear()

    @contextmanager
    def record(self) -> Iterator[None]:
        """Keep what is computed meanwhile."""
        self.recording = True
        try:
            yield
        finally:
            self.recording = False

    def open(self, tokens: int) -> bool:
        """Make room for so many more tokens; False if none are to be kept, or not so many."""
        bytes_each = 4 * len(self.linears) * sum(self.widths.values())
        if not self.recording or (self.size + tokens) * bytes_each > ROOM:
            return False
        self.kept.append([self._rows(tokens) for _ in self.linears])
        self.start = self.next = self.size
        self.size += tokens
        return True

    def take(self, tokens: int) -> Tensor:
        """The numbers of the next rows, into which products are written from now on."""
        self.first, self.next = self.next - self.start, self.next + tokens
        assert self.next <= self.size, "a round reads no more tokens than room was made for"
        return torch.arange(self.next - tokens, self.next)

    def product(self, layer: int, kind: Kind, inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """What a linear layer gives; it stays here and must not be changed."""
        place = self.kept[-1][layer][kind][self.first : self.first + len(inputs)]
        if bias is None:
            return torch.mm(inputs, weight, out=place)
        return torch.addmm(bias, inputs, weight, out=place)

    def note(self, segment: Segment, rows: Tensor) -> None:
        """Say where the rows of a prompt or of a completion are."""
        self.rows[segment] = rows

    def clear(self) -> None:
        """Drop everything, because the weights are no longer those that computed it."""
        self.rows: dict[Segment, Tensor] = {}
        self.kept: list[list[dict[Kind, Tensor]]] = []
        self.size = self.start = self.next = self.first = 0

    def find(self, batch: Batch, update: int) -> CachedRows | None:
        """What is known of a batch."""
        if not self.rows or not batch.line:
            return None
        known = [self.rows.get(segment) for segment in batch.line]
        first = len(batch.line) - len(batch.samples)
        chosen = self._chosen(len(batch.samples), update)
        prompts = {batch.line[first + number].prompt for number in chosen}
        renewed = {first + number for number in chosen}
        renewed |= {place for place in range(first) if batch.line[place].prompt in prompts}
        rows, anew = [], []
        for place, (segment, where) in enumerate(zip(batch.line, known, strict=True)):
            here = where is not None and place not in renewed
            rows.append(where if here else torch.zeros(segment.read, dtype=torch.int64))
            anew.append(torch.full((segment.read,), not here))
        watched = torch.tensor([batch.samples[number] for number in chosen])
        return CachedRows(torch.cat(rows), torch.cat(anew).nonzero()[:, 0], watched)

    @contextmanager
    def reused(self, found: CachedRows) -> Iterator[None]:
        """Let the model's linear layers take what was found instead of computing it; they must read that line."""
        for number, layer in enumerate(self.linears):
            for kind, group in layer.items():
                widths = [linear.out_features for linear in group]
                chunks = zip(*(chunk[number][kind].split(widths, 1) for chunk in self.kept), strict=True)
                for linear, parts in zip(group, chunks, strict=True):
                    linear.forward = partial(_cached_linear, linear, parts, found)  # pyright: ignore[reportAttributeAccessIssue]
        try:
            yield
        finally:
            for linear in chain.from_iterable(group for layer in self.linears for group in layer.values()):
                del linear.forward

    def _rows(self, tokens: int) -> dict[Kind, Tensor]:
        return {kind: torch.empty(tokens, width) for kind, width in self.widths.items()}

    def _chosen(self, count: int, update: int) -> list[int]:
        """The completions, out of so many, that this update computes anew: neighbours, which often share a prompt."""
        size = -(-count // WATCHED)
        return sorted({(update * size + number) % count for number in range(size)})


def recording(activation_cache: ActivationCache | None) -> AbstractContextManager[None]:
    """A context in which what is computed is kept, where there is a place for it."""
    return nullcontext() if activation_cache is None else activation_cache.record()


def can_cache_activations(model: nn.Module) -> bool:
    """Whether the trainer's pass repeats the lean decoder's to the letter, and on a CPU, where that is worth it."""
    inner = base_model(model)
    return (
        inner is model
        and supports(model)
        and inner.device.type == "cpu"
        and inner.dtype == torch.float32
        and not inner.is_gradient_checkpointing
        and not inner.config.attention_dropout
    )


def _linears(layer: Any) -> dict[Kind, list[nn.Linear]]:
    """The linear layers whose outputs the decoder computes side by side."""
    attention, mlp = layer.self_attn, layer.mlp
    return {
        "qkv": [attention.q_proj, attention.k_proj, attention.v_proj],
        "out": [attention.o_proj],
        "gate_up": [mlp.gate_proj, mlp.up_proj],
        "down": [mlp.down_proj],
    }


def _cached_linear(linear: nn.Linear, parts: tuple[Tensor, ...], found: CachedRows, inputs: Tensor) -> Tensor:
    """The outputs of a linear layer for one line of tokens, as they were found; those of places `anew` are computed."""
    source = parts[0] if len(parts) == 1 else torch.cat(parts)
    outputs = source.index_select(0, found.rows)
    return _CachedLinear.apply(inputs, linear.weight, linear.bias, outputs, found.anew)  # pyright: ignore[reportReturnType]


class _CachedLinear(torch.autograd.Function):
    """A linear layer whose outputs are known, but for the rows `anew`."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None, outputs: Tensor, anew: Tensor) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        ctx.biased = bias is not None
        if len(anew):
            outputs[anew] = functional.linear(inputs[0, anew], weight, bias)
        return outputs[None]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor):
        inputs, weight = ctx.saved_tensors
        grad = grads[0][0]
        of_inputs = (grad @ weight)[None] if ctx.needs_input_grad[0] else None
        return of_inputs, grad.t() @ inputs[0], grad.sum(0) if ctx.biased else None, None, None
