"""Log-probabilities of completion tokens: the vocabulary's logits exist only for a few tokens at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from operant.engines.language.policy.batching import Batch
from operant.engines.language.policy.sampling_mask import unpack
from operant.engines.language.policy.shared_prompts import NAME as BRANCHING
from operant.engines.language.policy.weights import base_model
from operant.errors import UsageError

CHUNK = 1 << 23
"""So many logits are in memory at once (32 MB in float32)."""


class TokenScores(NamedTuple):
    """One number for each completion token of a batch, in the batch's order; all but the first where asked for.

    `others` has the log-probabilities of other tokens in its place, and `top` the likeliest tokens there with theirs.
    """

    logprobs: Tensor
    entropies: Tensor | None = None
    others: Tensor | None = None
    top: tuple[Tensor, Tensor] | None = None


def token_logprobs(
    model: nn.Module,
    batch: Batch,
    temperature: float = 1.0,
    *,
    entropy: bool = False,
    others: Tensor | None = None,
    top: int = 0,
    mask: Tensor | None = None,
    chunk: int = CHUNK,
) -> TokenScores:
    """Log-probabilities of the batch's completion tokens under the logits divided by the temperature (1 where it is 0).

    With a `mask`, packed bits [tokens, bytes], they and the entropies are those of the distribution over the tokens
    kept; `others` are of the whole vocabulary always, and there is no `top`. They are computed in
    float32 at least, whatever the weights are. Gradients flow to the model from all but the `top` likeliest tokens;
    neither pass ever holds more than `chunk` logits.
    """
    inner = base_model(model)
    head = inner.get_output_embeddings()
    check_head(inner, head)
    hidden = hidden_states(inner, batch).flatten(0, 1)[batch.at]
    weight = head.weight
    scale = 1.0 / temperature if temperature else 1.0
    rows = max(1, chunk // weight.shape[0])
    own = batch.targets[:, None]

    def scored(targets: Tensor, mask: Tensor | None, entropy: bool, top: int) -> tuple[Tensor, ...]:
        return _HeadScores.apply(hidden, weight, targets, mask, scale, rows, entropy, top)  # pyright: ignore[reportReturnType]

    if mask is not None:
        logprobs, entropies, _, _ = scored(own, mask, entropy, 0)
        elsewhere = None if others is None else scored(others, None, False, 0)[0]
        return TokenScores(logprobs[:, 0], entropies if entropy else None, elsewhere)
    logprobs, entropies, ids, best = scored(own if others is None else torch.cat([own, others], 1), None, entropy, top)
    return TokenScores(
        logprobs[:, 0],
        entropies if entropy else None,
        None if others is None else logprobs[:, 1:],
        (ids, best) if top else None,
    )


def hidden_states(inner: Any, batch: Batch) -> Tensor:
    """The last hidden states [rows, length, width] of a Hugging Face model, before its head."""
    branches = batch.branches
    if branches is None:
        extra = {}
    elif inner.config._attn_implementation == BRANCHING:
        extra = {"branches": branches, "attention_mask": branches.mask(inner.dtype)}
    else:
        raise UsageError("this model cannot follow branches, so completions cannot share a prompt")
    found = inner.base_model(input_ids=batch.tokens, position_ids=batch.positions, use_cache=False, **extra)
    return found.last_hidden_state


def check_head(inner: Any, head: nn.Module) -> None:
    """Refuse models that do more than one matrix between hidden states and logits."""
    config = inner.config.get_text_config()
    for name in ("final_logit_softcapping", "logit_scale", "logits_scaling"):
        if getattr(config, name, None) not in (None, 1, 1.0):
            raise UsageError(f"models with {name} are not supported: their log-probabilities would be wrong")
    if getattr(head, "bias", None) is not None:
        raise UsageError(
            "models with a bias in the last layer are not supported: their log-probabilities would be wrong"
        )


class _HeadScores(torch.autograd.Function):
    """Hidden states and the head's weights to log-probabilities of `targets` [tokens, some] and entropies, by rows.

    The backward pass computes the logits again, unless all rows fit in at once.

    With z the scaled logits and p their softmax: d log p(a) / dz = 1[a] - p, and dH / dz = -p (log p + H). Tokens that
    a mask leaves out have z = -inf, p = 0 and no gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        mask: Tensor | None,
        scale: float,
        rows: int,
        entropy: bool,
        top: int,
    ):
        logprobs = torch.empty(targets.shape, dtype=_wide(hidden), device=hidden.device)
        entropies = torch.zeros_like(logprobs[:, 0])
        top = min(top, weight.shape[0])
        best, ids = logprobs.new_empty(len(targets), top), targets.new_empty(len(targets), top)
        logs = None
        for at in _pieces(len(targets), rows):
            logs = _log_softmax(hidden[at], weight, scale, _part(mask, at))
            logprobs[at] = logs.gather(1, targets[at])
            if top:
                best[at], ids[at] = logs.topk(top, -1)
            if entropy:
                entropies[at] = -(logs.exp() * _finite(logs, mask)).sum(-1)
        kept = logs if len(targets) <= rows and any(ctx.needs_input_grad) else None
        ctx.save_for_backward(hidden, weight, targets, entropies, kept, mask)
        ctx.scale, ctx.rows, ctx.entropy = scale, rows, entropy
        ctx.mark_non_differentiable(ids, best)
        return logprobs, entropies, ids, best

    @staticmethod
    def backward(ctx: Any, *grads: Tensor):
        hidden, weight, targets, entropies, kept, mask = ctx.saved_tensors
        d_hidden = torch.empty_like(hidden)
        learnt = ctx.needs_input_grad[1]  # with LoRA the head is not
        d_weight = torch.zeros(weight.shape, dtype=_wide(weight), device=weight.device) if learnt else None
        for at in _pieces(len(targets), ctx.rows):
            logs = _log_softmax(hidden[at], weight, ctx.scale, _part(mask, at)) if kept is None else kept
            chances = logs.exp()
            d_logits = chances * -grads[0][at].sum(1, keepdim=True)
            d_logits.scatter_add_(1, targets[at], grads[0][at])
            if ctx.entropy:
                d_logits -= grads[1][at, None] * chances * (_finite(logs, mask) + entropies[at, None])
            d_logits = d_logits.mul_(ctx.scale).to(hidden.dtype)
            d_hidden[at] = d_logits @ weight
            if d_weight is not None:
                d_weight += d_logits.t() @ hidden[at]
        of_weight = None if d_weight is None else d_weight.to(weight.dtype)
        return d_hidden, of_weight, None, None, None, None, None, None


def _log_softmax(hidden: Tensor, weight: Tensor, scale: float, mask: Tensor | None) -> Tensor:
    logits = (hidden @ weight.t()).to(_wide(hidden))
    if mask is not None:
        logits.masked_fill_(~unpack(mask, len(weight)), -torch.inf)
    return torch.log_softmax(logits.mul_(scale) if scale != 1.0 else logits, -1)


def _part(mask: Tensor | None, at: slice) -> Tensor | None:
    return None if mask is None else mask[at]


def _finite(logs: Tensor, mask: Tensor | None) -> Tensor:
    """Log-probabilities to multiply with probabilities, of which those left out are 0."""
    return logs if mask is None else logs.masked_fill(logs.isneginf(), 0.0)


def _pieces(total: int, rows: int) -> list[slice]:
    return [slice(start, min(start + rows, total)) for start in range(0, total, rows)]


def _wide(like: Tensor) -> torch.dtype:
    """Float32, or the tensor's own kind where that is finer."""
    return torch.promote_types(like.dtype, torch.float32)
