"""Completions that share a prompt: the same numbers and gradients as each of them alone, with fewer tokens read."""

from __future__ import annotations

import random

import pytest
import torch

from operant.engines.language.policy.batching import Sample, micro_batches
from operant.engines.language.policy.logprobs import token_logprobs
from operant.engines.language.policy.model import Policy, load_policy
from operant.engines.language.policy.shared_prompts import enable_shared_prompts
from operant.errors import UsageError
from tests.unit.engines.language.small_models import SIZES, random_policy


def group(prompts: list[int], completions: list[int], seed: int = 0) -> list[Sample]:
    """Every prompt length with every completion length."""
    draw = random.Random(seed)

    def some(count: int) -> tuple[int, ...]:
        return tuple(draw.randrange(2, 258) for _ in range(count))

    return [Sample(prompt, some(length)) for prompt in map(some, prompts) for length in completions]


def scores_and_gradients(policy: Policy, samples: list[Sample], share_from: float | None):
    """Of each sample's tokens, and of every weight, in passes of at most 90 tokens."""
    policy.model.zero_grad()
    found: dict[int, list[float]] = {}
    for batch in micro_batches(samples, 90, share_from=share_from):
        logprobs = token_logprobs(policy.model, batch, 0.8).logprobs
        (logprobs * (1 + batch.owner)).sum().backward()
        for owner, value in zip(batch.owner.tolist(), logprobs.tolist(), strict=True):
            found.setdefault(owner, []).append(value)
    gradients = {name: value.grad for name, value in policy.model.named_parameters() if value.grad is not None}
    return [found[number] for number in range(len(samples))], {name: grad.clone() for name, grad in gradients.items()}


@pytest.mark.parametrize(
    ("prompts", "completions"),
    [([3, 7, 1], [5, 1, 9, 2]), ([4], [1, 1, 1]), ([6, 6], [4, 4]), ([30, 2], [20, 3, 11])],
    ids=["unequal", "one token each", "equal", "long"],
)
@pytest.mark.parametrize("kind", ["tiny", "llama", "qwen2", "qwen3", "lora", "checkpointed"])
def test_sharing_changes_neither_scores_nor_gradients(kind: str, prompts: list[int], completions: list[int]) -> None:
    if kind in ("lora", "checkpointed"):
        lora = {"r": 4, "init_lora_weights": False} if kind == "lora" else None
        policy = load_policy("tiny", tiny=SIZES, dtype=torch.float64, lora=lora, gradient_checkpointing=lora is None)
    else:
        policy = random_policy(kind, torch.float64)
    policy.model.train()
    samples = group(prompts, completions)
    assert enable_shared_prompts(policy.model) == 0.0
    alone, wanted = scores_and_gradients(policy, samples, None)
    shared, gradients = scores_and_gradients(policy, samples, 0.0)
    # The models norm in float32, whatever their weights are.
    for one, other in zip(alone, shared, strict=True):
        assert one == pytest.approx(other, abs=1e-5)
    assert wanted.keys() == gradients.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, wanted[name], atol=2e-5, rtol=1e-4)


def test_a_model_that_cannot_is_told_apart() -> None:
    policy = random_policy("gpt2")
    assert enable_shared_prompts(policy.model) is None
    (batch,) = micro_batches(group([4], [3, 3]), 90, share_from=0.0)
    with pytest.raises(UsageError, match="cannot share a prompt"):
        token_logprobs(policy.model, batch)


def test_plain_rows_are_as_they_were(tmp_path) -> None:
    """A model that has learnt to follow branches gives what it gave for anyone else, and is saved as it was."""
    policy = random_policy("llama")
    tokens = torch.tensor([[5, 6, 7, 8], [9, 10, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    before = policy.model(tokens, attention_mask=mask).logits
    enable_shared_prompts(policy.model)
    assert torch.equal(policy.model(tokens, attention_mask=mask).logits, before)
    policy.model.save_pretrained(tmp_path)
    assert "branches" not in (tmp_path / "config.json").read_text()
