"""The trainer's log-probabilities: equal to plain full logits, and to what the generator said."""

from __future__ import annotations

import pytest
import torch

from operant.engines.language.generation.generator import Prompt, Sampling
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.policy.batching import Sample, micro_batches
from operant.engines.language.policy.logprobs import token_logprobs
from operant.engines.language.policy.shared_prompts import enable_shared_prompts
from tests.unit.engines.language.small_models import KINDS, random_policy

SAMPLES = [
    Sample((5, 6, 7), (8, 9, 10, 11)),
    Sample((5, 6, 7), (12,)),
    Sample((5, 6, 7), (3, 4)),
    Sample((20, 21, 22, 23, 24), (9, 8, 7, 6, 5, 4)),
]


def plain(model: torch.nn.Module, sample: Sample, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """All logits of one sample at once."""
    logits = model(torch.tensor([sample.prompt + sample.completion])).logits[0, len(sample.prompt) - 1 : -1]
    logs = torch.log_softmax(logits / temperature, -1)
    return logs[torch.arange(len(sample.completion)), torch.tensor(sample.completion)], -(logs.exp() * logs).sum(-1)


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("chunk", [1 << 23, 200])
def test_values_and_gradients_are_those_of_the_full_logits(share: bool, chunk: int) -> None:
    model = random_policy("llama", torch.float64).model.train()
    assert enable_shared_prompts(model) == 0.0
    weights = torch.linspace(-1, 2, 13, dtype=torch.float64)
    expected = torch.cat([torch.stack(plain(model, sample, 0.7)).t() for sample in SAMPLES])
    (weights @ expected[:, 0] + (weights**2) @ expected[:, 1]).backward()
    wanted = {name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None}
    model.zero_grad()
    starts = torch.tensor([0, 4, 5, 7])
    for batch in micro_batches(SAMPLES, 24, share_from=0.0 if share else None):
        scores = token_logprobs(model, batch, 0.7, entropy=True, chunk=chunk)
        within = torch.cat([torch.arange(len(SAMPLES[sample].completion)) for sample in batch.samples])
        place = starts[batch.owner] + within
        assert scores.entropies is not None
        torch.testing.assert_close(scores.logprobs, expected[place, 0].detach(), atol=1e-6, rtol=0)
        torch.testing.assert_close(scores.entropies, expected[place, 1].detach(), atol=1e-6, rtol=0)
        (weights[place] @ scores.logprobs + (weights[place] ** 2) @ scores.entropies).backward()
    for name, value in model.named_parameters():
        torch.testing.assert_close(value.grad, wanted[name], atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_generator_and_trainer_agree(kind: str) -> None:
    policy = random_policy(kind)
    prompts = [Prompt(tuple(range(2, 2 + length)), 3 + length) for length in (3, 9, 4)]
    groups = TorchGenerator(policy, slots=4).generate(prompts, Sampling(n=3, temperature=1.3, seed=4))
    samples = [
        Sample(prompt.tokens, one.tokens) for prompt, group in zip(prompts, groups, strict=True) for one in group
    ]
    said = [one.logprobs for group in groups for one in group]
    share_from = enable_shared_prompts(policy.model)
    assert (share_from is None) == (kind in ("gpt2", "gemma3"))
    for batch in micro_batches(samples, 64, share_from=share_from):
        with torch.no_grad():
            scores = token_logprobs(policy.model, batch, 1.3)
        expected = torch.tensor([value for sample in batch.samples for value in said[sample]])
        torch.testing.assert_close(scores.logprobs, expected, atol=1e-4, rtol=0)
