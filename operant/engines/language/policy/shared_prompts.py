"""Attention of many completions to one prompt: the prompt is computed once, and nobody looks at what is not theirs.

All tokens of a pass stand in one line without padding, which is all that the linear layers of a model see. Only
attention knows who belongs to whom: it lays the prompts out as rows of a rectangle and the completions as rows of
another, lets prompts look at themselves and completions at their prompt and themselves, and puts the line together
again. Packed samples are prompts without completions. A model learns this way of looking once
(`enable_shared_prompts`), and each pass brings its own `Branches`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from operant.engines.language.policy.weights import base_model, supports

NAME = "operant_branches"
"""What this attention is called among those of transformers."""

SAVING_ON_CPU, SAVING_ON_GPU = 0.0, 0.5
"""Sharing pays from such a part of all tokens on: a CPU saves what it does not compute, but on a GPU attention with a
mask costs so much more than without that a fifth saved made passes half again as long; four fifths made them half."""


@dataclass(frozen=True)
class Branches:
    """Who looks at whom in a line of T tokens, of N prompts and C completions.

    The rectangle of prompts is N by `prompt_width`, that of completions C by `width`. `places` has for each of their
    cells, prompts first, the token that stands there (`empty` where none does), and `back` for each token its cell.
    `parents` says which prompt a completion continues, and `prompt_lengths` how long that is.
    """

    prompt_width: int
    width: int
    places: Tensor
    empty: Tensor
    back: Tensor
    parents: Tensor
    prompt_lengths: Tensor

    def to(self, device: torch.device | str) -> Branches:
        """The same on another device."""
        moved = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, **moved)

    def mask(self, dtype: torch.dtype) -> Tensor:
        """What is added to the scores of completions [C, 1, width, prompt_width + width]: 0, or minus infinity.

        Their tokens may look at the prompt's and their own. It is large, so only the pass under way has one.
        """
        device = self.parents.device
        of_prompt = torch.arange(self.prompt_width, device=device) < self.prompt_lengths[:, None]
        own = torch.ones(self.width, self.width, dtype=torch.bool, device=device).tril()
        shape = (len(self.parents), self.width, -1)
        visible = torch.cat([of_prompt[:, None].expand(shape), own.expand(shape)], -1)
        hidden = torch.zeros(visible.shape, dtype=dtype, device=device).masked_fill_(~visible, float("-inf"))
        return hidden[:, None]


def lay_out(prompts: Sequence[int], completions: Sequence[int], parents: Sequence[int]) -> Branches:
    """The branches of prompts and completions of these lengths that stand in line, all prompts first."""
    prompt_places, prompt_width = _rectangle(prompts, 0)
    own_places, width = _rectangle(completions, sum(prompts))
    places = torch.cat([prompt_places, own_places])
    empty = places < 0
    parent = torch.tensor(parents, dtype=torch.int64)
    return Branches(
        prompt_width=prompt_width,
        width=width,
        places=places.clamp(min=0),
        empty=empty,
        back=torch.nonzero(~empty)[:, 0],
        parents=parent,
        prompt_lengths=torch.tensor(prompts)[parent],
    )


def _rectangle(lengths: Sequence[int], start: int) -> tuple[Tensor, int]:
    """Cells of rows filled from the left with tokens `start` and on, -1 where a row is over; and the rows' width."""
    sizes = torch.tensor(lengths, dtype=torch.int64)
    width = max((1, *lengths))
    column = torch.arange(width)
    first = start + sizes.cumsum(0) - sizes
    return torch.where(column < sizes[:, None], first[:, None] + column, -1).flatten(), width


def enable_shared_prompts(model: nn.Module) -> float | None:
    """Teach a model to look along branches where a pass brings them, and say from which saving on they should be.

    None if the model is of a kind that cannot.
    """
    inner = base_model(model)
    if not supports(model) or not inner._supports_attention_backend:
        return None
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    inner.set_attn_implementation(NAME)
    return SAVING_ON_CPU if inner.device.type == "cpu" else SAVING_ON_GPU


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    branches: Branches | None = None,
    **settings: Any,
) -> tuple[Tensor, None]:
    """What a layer of transformers calls with [1, heads, tokens, width]; without branches it is plain attention."""
    square = query.shape[2] == key.shape[2] and attention_mask is None
    if branches is None and square and query.shape[1] != key.shape[1] and not _shares_keys(query, None):
        rows = (each.transpose(1, 2) for each in (query, key, value))
        return _look(*rows, is_causal=True, dropout_p=settings.get("dropout", 0.0), scale=settings.get("scaling")), None
    if branches is None:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        return sdpa_attention_forward(module, query, key, value, attention_mask, **settings)
    shared = {"dropout_p": settings.get("dropout", 0.0), "scale": settings.get("scaling")}
    prompt_q, own_q = _rows(query, branches)
    prompt_k, own_k = _rows(key, branches)
    prompt_v, own_v = _rows(value, branches)
    found = _look(prompt_q, prompt_k, prompt_v, is_causal=True, **shared).flatten(0, 1)
    if len(branches.parents):
        of_completions = _completions(own_q, (prompt_k, own_k), (prompt_v, own_v), branches, attention_mask, shared)
        found = torch.cat([found, of_completions.flatten(0, 1)])
    return _Collect.apply(found, branches.places, branches.empty, branches.back)[None], None  # pyright: ignore[reportReturnType, reportOptionalSubscript]


def _shares_keys(query: Tensor, mask: Tensor | None) -> bool:
    """Whether torch has a kernel in which query heads share keys; otherwise it writes out the scores of all pairs."""
    return mask is None and not (query.is_cuda and query.dtype == torch.float32)


def _completions(
    query: Tensor,
    keys: tuple[Tensor, Tensor],
    values: tuple[Tensor, Tensor],
    branches: Branches,
    mask: Tensor | None,
    shared: dict[str, Any],
) -> Tensor:
    """Attention of completions to their prompts' keys and values, and to their own."""
    key, value = (torch.cat([theirs.index_select(0, branches.parents), own], 1) for theirs, own in (keys, values))
    return _look(query, key, value, attn_mask=mask, **shared)


def _rows(line: Tensor, branches: Branches) -> tuple[Tensor, Tensor]:
    """The prompts [N, prompt_width, heads, width] and the completions [C, width, heads, width] of a line."""
    cells: Any = _Spread.apply(line[0].transpose(0, 1), branches.places, branches.back)
    own = len(cells) - len(branches.parents) * branches.width
    prompts, completions = cells[:own], cells[own:]
    shape = cells.shape[1:]
    return prompts.view(-1, branches.prompt_width, *shape), completions.view(-1, branches.width, *shape)


def _look(query: Tensor, key: Tensor, value: Tensor, **settings: Any) -> Tensor:
    """Attention of rows [rows, length, heads, width]; query heads may share keys."""
    sharing = query.shape[2] // key.shape[2]
    shared = sharing > 1 and _shares_keys(query, settings.get("attn_mask"))
    if sharing > 1 and not shared:
        key, value = key.repeat_interleave(sharing, 2), value.repeat_interleave(sharing, 2)
    query, key, value = (each.transpose(1, 2) for each in (query, key, value))
    return functional.scaled_dot_product_attention(query, key, value, enable_gqa=shared, **settings).transpose(1, 2)


class _Spread(torch.autograd.Function):
    """From a line to cells; every token has one cell that counts, so gradients need no sums."""

    @staticmethod
    def forward(ctx: Any, line: Tensor, places: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(back)
        return line.index_select(0, places)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor):
        (back,) = ctx.saved_tensors
        return grads[0].index_select(0, back), None, None


class _Collect(torch.autograd.Function):
    """From cells to a line; what stands in an empty cell gets no gradient."""

    @staticmethod
    def forward(ctx: Any, cells: Tensor, places: Tensor, empty: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(places, empty)
        return cells.index_select(0, back)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor):
        places, empty = ctx.saved_tensors
        spread = grads[0].index_select(0, places)
        return spread.masked_fill_(empty[:, None, None], 0.0), None, None, None
