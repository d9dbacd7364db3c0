"""Truncated sampling: what top_p, top_k and min_p left to draw from is what the loss computes with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from operant.engines.language.build import TrainingContext, build_context
from operant.engines.language.generation.generator import Completion, Prompt, Sampling, Step
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.learning.samples import samples_of
from operant.engines.language.policy.batching import Sample, micro_batches
from operant.engines.language.policy.logprobs import token_logprobs
from operant.engines.language.policy.sampling_mask import SamplingMask, pack, unpack
from operant.engines.language.rollouts.types import Answer
from operant.envs.text.task import Verdict
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from tests.unit.engines.language.conftest import graded, spec_of
from tests.unit.engines.language.small_models import random_policy

TRUNCATED = {"top_p": 0.9, "top_k": 20, "min_p": 0.02, "temperature": 0.8, "zero_variance": "keep"}


def learnt(algorithm: dict[str, Any], **model: Any) -> tuple[dict[str, float], TrainingContext]:
    """The report of a first round."""
    with build_context(spec_of(algorithm, **model), Seeds(3)) as context:
        context.learner.snapshot_reference()
        return context.learner.learn(graded(context.gather()), Progress(), 1000).means, context


@pytest.mark.parametrize("cut", [{"top_p": 0.9}, {"top_k": 20}, {"min_p": 0.3}, TRUNCATED])
def test_the_ratio_of_a_first_step_is_exactly_one_and_the_generator_agrees(cut: dict[str, Any]) -> None:
    means, _ = learnt({"zero_variance": "keep", "kl": "k3", "kl_coef": 0.1, **cut})
    assert means["policy/ratio"] == 1.0
    assert means["policy/kl"] == 0.0
    assert means["policy/reference_kl"] == 0.0
    assert abs(means["mismatch/kl"]) < 1e-8


def test_ratios_to_the_generators_own_log_probabilities_are_one_too() -> None:
    means, _ = learnt({**TRUNCATED, "old_logprobs": "generator"})
    assert means["policy/ratio"] == pytest.approx(1.0, abs=1e-6)


def test_without_the_masks_the_two_would_disagree() -> None:
    with build_context(spec_of(TRUNCATED), Seeds(3)) as context:
        context.learner._mask = lambda samples: None  # pyright: ignore[reportAttributeAccessIssue]
        means = context.learner.learn(graded(context.gather()), Progress(), 1000).means
    assert means["mismatch/kl"] > 1e-3


def test_a_mask_keeps_what_an_independent_computation_keeps() -> None:
    policy, sampling = random_policy("llama"), Sampling(4, 0.8, 0.9, 20, seed=2, min_p=0.1, keep_mask=True)
    for made in TorchGenerator(policy).generate([Prompt((5, 9, 11), 6)], sampling)[0]:
        assert made.mask is not None
        tokens = torch.tensor([(5, 9, 11, *made.tokens)])
        logits = policy.model(tokens).logits[0, 2:-1].detach().double() / 0.8
        kept = unpack(torch.from_numpy(made.mask.packed().copy()), logits.shape[1])
        for place, (row, bits) in enumerate(zip(logits, kept, strict=True)):
            order = row.argsort(descending=True)
            chances = torch.softmax(row[order[:20]], 0)
            inside = int((chances.cumsum(0) - chances < 0.9).sum())
            expected = [int(each) for at, each in enumerate(order[:inside]) if chances[at] >= 0.1 * chances[0]]
            assert sorted(expected) == bits.nonzero()[:, 0].tolist()
            share = torch.log_softmax(row[expected], 0)[expected.index(made.tokens[place])]
            assert made.logprobs[place] == pytest.approx(float(share), abs=1e-5)


def test_gradients_over_kept_tokens_are_those_of_a_masked_softmax() -> None:
    policy = random_policy("llama")
    samples = [Sample((5, 9), (11, 12, 13)), Sample((7,), (8, 9))]
    batch = micro_batches(samples, 64, pad_id=0)[0]
    kept = torch.rand(len(batch.targets), 258, generator=torch.Generator().manual_seed(1)) < 0.3
    kept[torch.arange(len(kept)), batch.targets] = True
    policy.model.zero_grad()
    for chunk in (1 << 23, 600):
        found = token_logprobs(policy.model, batch, 0.7, entropy=True, mask=pack(kept), chunk=chunk)
        assert found.entropies is not None
        (found.logprobs.sum() + 0.3 * found.entropies.sum()).backward()
    grads = {
        name: weight.grad.clone() / 2 for name, weight in policy.model.named_parameters() if weight.grad is not None
    }
    policy.model.zero_grad()
    logits = policy.model(batch.tokens).logits.flatten(0, 1)[batch.at] / 0.7
    logs = torch.log_softmax(logits.masked_fill(~kept, -1e30), -1)
    truth = logs.gather(1, batch.targets[:, None])[:, 0]
    entropies = -(logs.exp() * logs.clamp_min(-1e20)).sum(-1)
    torch.testing.assert_close(found.logprobs, truth)
    torch.testing.assert_close(found.entropies, entropies)
    (truth.sum() + 0.3 * entropies.sum()).backward()
    for name, weight in policy.model.named_parameters():
        torch.testing.assert_close(grads[name], weight.grad, atol=1e-5, rtol=1e-4)


def test_a_teachers_likeliest_tokens_are_compared_over_the_whole_vocabulary() -> None:
    policy = random_policy("llama")
    batch = micro_batches([Sample((5, 9), (11, 12))], 64, pad_id=0)[0]
    kept = torch.zeros(2, 258, dtype=torch.bool)
    kept[:, [11, 12, 40]] = True
    others = torch.tensor([[1, 2, 3], [4, 5, 6]])
    masked = token_logprobs(policy.model, batch, others=others, mask=pack(kept)).others
    torch.testing.assert_close(masked, token_logprobs(policy.model, batch, others=others).others)


def test_masks_are_kept_whole_and_cut_to_a_vocabulary() -> None:
    bits = np.random.default_rng(0).random((5, 37)) < 0.5
    mask = SamplingMask.of_tokens([row.nonzero()[0] for row in bits], 37)
    packed = torch.from_numpy(mask.packed().copy())
    np.testing.assert_array_equal(unpack(packed, 37).numpy(), bits)
    np.testing.assert_array_equal(packed.numpy(), pack(torch.from_numpy(bits)).numpy())
    assert unpack(packed, 50)[:, 37:].sum() == 0
    assert unpack(packed, 20).shape == (5, 20)


def test_a_dialogues_steps_keep_their_masks_in_one_sample() -> None:
    first = Completion((3, 4), (-1.0, -1.0), "ab", "stop", mask=SamplingMask.of_tokens([[3], [4]], 16))
    second = Completion((7,), (-2.0,), "c", "stop", mask=SamplingMask.of_tokens([[7, 8]], 16))
    answer = Answer((Step((1,), first), Step((1, 3, 4, 9), second)), Verdict(1.0, "right"), 1.0, interleaved=True)
    ((tokens, logprobs, masks),) = samples_of(answer)
    assert len(tokens.places) == len(logprobs) == sum(mask.places for mask in masks) == 3
