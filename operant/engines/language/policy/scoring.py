"""Texts as the model sees them: how likely each of their tokens was, and which would have been likelier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from operant.engines.language.policy.batching import Batch, Sample, micro_batches
from operant.engines.language.policy.logprobs import CHUNK, check_head, hidden_states
from operant.engines.language.policy.weights import base_model
from operant.errors import UsageError

if TYPE_CHECKING:
    from operant.engines.language.policy.model import Policy

PASS_TOKENS = 16_384
ONE_PASS = 1 << 62

Best = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class TextScores:
    """For each token of a text its log-probability after those before it, and the likeliest tokens in its place.

    Nothing comes before the first token, which therefore has neither: None, and no likeliest ones.
    """

    logprobs: tuple[float | None, ...]
    best: tuple[Best, ...]


@torch.inference_mode()
def score_texts(
    policy: Policy, texts: Sequence[Sequence[int]], temperature: float = 1.0, top: int = 0, chunk: int = CHUNK
) -> list[TextScores]:
    """How likely the policy finds texts in tokens, with the `top` likeliest tokens at every place, likeliest first.

    As everywhere, the logits are divided by the temperature (1 where it is 0).
    """
    _check(policy, texts)
    several = [number for number, text in enumerate(texts) if len(text) > 1]
    samples = [Sample(tuple(texts[number][:1]), tuple(texts[number][1:])) for number in several]
    logprobs: list[list[float | None]] = [[None] for _ in texts]
    best: list[list[Best]] = [[()] for _ in texts]
    training = policy.model.training
    policy.model.eval()
    try:
        for batch in micro_batches(samples, PASS_TOKENS, pad_id=policy.pad_id):
            found, likeliest = _score(policy, batch, temperature, top, chunk)
            for owner, value, tokens in zip(batch.owner.tolist(), found, likeliest, strict=True):
                logprobs[several[owner]].append(value)
                best[several[owner]].append(tokens)
    finally:
        policy.model.train(training)
    return [TextScores(tuple(values), tuple(tokens)) for values, tokens in zip(logprobs, best, strict=True)]


def _check(policy: Policy, texts: Sequence[Sequence[int]]) -> None:
    for number, text in enumerate(texts):
        # The last token is only predicted and never read.
        if not 0 < len(text) <= policy.context + 1:
            raise UsageError(f"text {number} has {len(text)} tokens; the model reads {policy.context} and predicts one")


def _score(policy: Policy, batch: Batch, temperature: float, top: int, chunk: int) -> tuple[list[float], list[Best]]:
    inner = base_model(policy.model)
    head = inner.get_output_embeddings()
    check_head(inner, head)
    batch = batch.to(head.weight.device)
    hidden = hidden_states(inner, batch).flatten(0, 1)[batch.at]
    rows = max(1, chunk // head.weight.shape[0])
    logprobs: list[float] = []
    best: list[Best] = []
    for start in range(0, len(hidden), rows):
        logits = (hidden[start : start + rows] @ head.weight.t()).float()
        logs = torch.log_softmax(logits / temperature if temperature else logits, -1)
        logprobs += logs.gather(1, batch.targets[start : start + rows, None])[:, 0].tolist()
        best += _likeliest(logs, top)
    return logprobs, best


def _likeliest(logs: Tensor, top: int) -> list[Best]:
    if not top:
        return [()] * len(logs)
    values, tokens = logs.topk(min(top, logs.shape[-1]), -1)
    return [tuple(zip(ids, each, strict=True)) for ids, each in zip(tokens.tolist(), values.tolist(), strict=True)]


@torch.inference_mode()
def next_token_logprobs(policy: Policy, samples: Sequence[Sample], temperature: float) -> Tensor:
    """The log-probabilities [tokens, vocabulary] of everything that may stand in the places of the samples' tokens.

    They come sample by sample, as the trainer computes them: the logits divided by the temperature, in float32.
    """
    inner = base_model(policy.model)
    head = inner.get_output_embeddings()
    training = policy.model.training
    policy.model.eval()
    try:
        (batch,) = micro_batches(samples, ONE_PASS, pad_id=policy.pad_id)
        batch = batch.to(head.weight.device)
        hidden = hidden_states(inner, batch).flatten(0, 1)[batch.at]
        logits = (hidden @ head.weight.t()).float()
    finally:
        policy.model.train(training)
    return torch.log_softmax(logits / temperature, -1)[batch.owner.argsort(stable=True)]
