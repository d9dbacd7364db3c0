"""What the generator computed serves the trainer: the same gradients, never after a change, and never unwatched."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from operant.engines.language.build import TrainingContext, build_context
from operant.engines.language.distributed.fsdp import Scorer
from operant.engines.language.generation import activation_cache as module
from operant.engines.language.generation.activation_cache import ActivationCache, can_cache_activations
from operant.engines.language.generation.generator import Completion, Prompt, Sampling
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.policy.batching import Batch, Sample, micro_batches
from operant.engines.language.policy.model import Policy
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from tests.unit.engines.language.conftest import graded, spec_of
from tests.unit.engines.language.small_models import random_policy

PROMPTS = [Prompt((5, 6, 7), 9), Prompt((8, 9, 10, 11, 12), 7), Prompt((30,), 12)]


def written(policy: Policy, slots: int) -> tuple[ActivationCache, list[Sample]]:
    """Completions of the prompts, some of which end early, and what was kept of them."""
    activation_cache = ActivationCache(policy.model)
    generator = TorchGenerator(policy, slots=slots, activation_cache=activation_cache)
    with activation_cache.record():
        groups = generator.generate(PROMPTS, Sampling(n=5, seed=4))
    pairs = zip(PROMPTS, groups, strict=True)
    return activation_cache, [Sample(prompt.tokens, each.tokens) for prompt, group in pairs for each in group]


def one_line(policy: Policy, samples: list[Sample]) -> tuple[Scorer, Batch]:
    scorer = Scorer(policy.model)
    (batch,) = micro_batches(samples, 4096, share_from=scorer.share_from)
    return scorer, batch


def gradients(scorer: Scorer, batch: Batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    scorer.zero_grad()
    logprobs = scorer(batch, 1.0)[0]
    (logprobs * torch.linspace(-1, 1, len(logprobs))).sum().backward()
    found = {name: weight.grad for name, weight in scorer.named_parameters() if weight.grad is not None}
    return logprobs.detach(), found


@pytest.mark.parametrize("slots", [4, 64])
@pytest.mark.parametrize("kind", ["tiny", "llama", "qwen2", "qwen3"])
def test_gradients_are_those_of_a_pass_that_computes_everything(kind: str, slots: int) -> None:
    policy = random_policy(kind)
    activation_cache, samples = written(policy, slots)
    assert len({len(sample.completion) for sample in samples}) > 1 or kind == "tiny"
    scorer, batch = one_line(policy, samples)
    logprobs, plain = gradients(scorer, batch)
    found = activation_cache.find(batch, 0)
    assert found is not None
    assert 0 < len(found.anew) < len(found.rows) / 2
    with activation_cache.reused(found):
        again, recalled = gradients(scorer, batch)
    assert torch.allclose(logprobs, again, atol=1e-4)
    assert plain.keys() == recalled.keys()
    for name, value in plain.items():
        assert torch.allclose(value, recalled[name], rtol=1e-3, atol=1e-4 * float(value.abs().max())), name


def test_the_pass_really_takes_what_was_kept() -> None:
    policy = random_policy("llama")
    activation_cache, samples = written(policy, 64)
    scorer, batch = one_line(policy, samples)
    found = activation_cache.find(batch, 0)
    assert found is not None
    for layer in activation_cache.kept[0]:
        layer["down"] = torch.zeros(layer["down"].shape)
    with torch.no_grad(), activation_cache.reused(found):
        spoilt = scorer(batch, 1.0)[0]
    with torch.no_grad():
        plain = scorer(batch, 1.0)[0]
    anew = torch.isin(batch.owner, found.watched)
    assert torch.allclose(spoilt[anew], plain[anew], atol=1e-4)
    assert (spoilt[~anew] - plain[~anew]).abs().mean() > 0.01


def test_what_was_not_kept_is_computed() -> None:
    policy = random_policy("llama")
    activation_cache, samples = written(policy, 64)
    stranger = Sample(samples[0].prompt, (40, 41, 42))
    scorer, batch = one_line(policy, [*samples, stranger, Sample((90, 91), (3, 4)), Sample((90, 91), (5, 6))])
    plain, _ = gradients(scorer, batch)
    found = activation_cache.find(batch, 1)
    assert found is not None
    with activation_cache.reused(found):
        assert torch.allclose(plain, scorer(batch, 1.0)[0], atol=1e-4)


def test_every_completion_is_computed_anew_in_its_turn() -> None:
    policy = random_policy("tiny")
    activation_cache, samples = written(policy, 64)
    _, batch = one_line(policy, samples)
    found = [activation_cache.find(batch, update) for update in range(len(samples))]
    watched = [each.watched.tolist() for each in found if each is not None]
    assert all(len(some) == 1 for some in watched)
    assert {number for some in watched for number in some} == set(range(len(samples)))


def test_several_calls_add_up_and_only_what_is_listened_to_is_kept() -> None:
    policy = random_policy("tiny")
    activation_cache = ActivationCache(policy.model)
    generator = TorchGenerator(policy, activation_cache=activation_cache)
    generator.generate(PROMPTS, Sampling(n=2, seed=1))
    assert not activation_cache.rows
    assert not activation_cache.kept
    groups: list[list[Completion]] = []
    with activation_cache.record():
        for prompt in PROMPTS:
            groups += generator.generate([prompt], Sampling(n=4, seed=4))
    pairs = zip(PROMPTS, groups, strict=True)
    samples = [Sample(prompt.tokens, each.tokens) for prompt, group in pairs for each in group]
    scorer, batch = one_line(policy, samples)
    found = activation_cache.find(batch, 0)
    assert found is not None
    with torch.no_grad():
        plain = scorer(batch, 1.0)[0]
        with activation_cache.reused(found):
            assert torch.allclose(plain, scorer(batch, 1.0)[0], atol=1e-4)


def test_a_round_that_may_need_too_much_memory_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROOM", 10_000)
    activation_cache, samples = written(random_policy("tiny"), 64)
    assert activation_cache.kept == []
    assert activation_cache.find(one_line(random_policy("tiny"), samples)[1], 0) is None


@pytest.mark.parametrize("kind", ["gpt2", "gemma3"])
def test_models_that_the_lean_decoder_does_not_compute_are_left_alone(kind: str) -> None:
    assert not can_cache_activations(random_policy(kind).model)
    assert not can_cache_activations(random_policy("tiny", torch.bfloat16).model)


def trained(recalling: bool, rounds: int, **algorithm: Any) -> tuple[list[dict[str, float]], dict[str, torch.Tensor]]:
    """What rounds of a lab report, and its weights after them."""
    plain = {"name": "sgd", "lr": 0.05, "clip_grad_norm": None}
    reports = []
    with build_context(spec_of({"zero_variance": "keep", **algorithm}, optimizer=plain), Seeds(3)) as context:
        if not recalling:
            context.learner.activation_cache = None
        for update in range(rounds):
            reports.append(context.learner.learn(graded(context.gather()), Progress(0, update), 1000).means)
        return reports, {name: value.detach().clone() for name, value in context.policy.model.named_parameters()}


@pytest.mark.parametrize("algorithm", [{}, {"training_epoch": 2, "minibatch_size": 8}, {"entropy_coef": 0.1}])
def test_rounds_of_training_go_the_same_way(algorithm: dict[str, Any]) -> None:
    ours, with_it = trained(True, 3, **algorithm)
    plain, without = trained(False, 3, **algorithm)
    assert all(torch.allclose(with_it[name], without[name], atol=1e-5) for name in without)
    assert ours[0]["policy/ratio"] == pytest.approx(plain[0]["policy/ratio"], abs=1e-5)


def spied(context: TrainingContext, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each pass of the policy found anything to take."""
    assert context.learner.activation_cache is not None
    passes: list[bool] = []
    find = context.learner.activation_cache.find

    def watched(batch: Batch, update: int) -> Any:
        found = find(batch, update)
        passes.append(found is not None)
        return found

    monkeypatch.setattr(context.learner.activation_cache, "find", watched)
    return passes


def test_nothing_is_taken_once_a_weight_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of({"zero_variance": "keep", "training_epoch": 2, "minibatch_size": 8})
    with build_context(spec, Seeds(3)) as context:
        passes = spied(context, monkeypatch)
        context.learner.learn(graded(context.gather()), Progress(), 1000)
    # Old log-probabilities of both minibatches, then four steps, of which only the first has the old weights.
    assert passes == [True, True, True, False, False, False]


def test_disagreement_shows_in_what_is_computed_anew() -> None:
    with build_context(spec_of({"zero_variance": "keep"}), Seeds(3)) as context:
        groups = graded(context.gather())
        # The generator had other weights than the trainer, and nobody said so.
        with torch.no_grad():
            for weight in context.policy.model.parameters():
                weight += 0.1 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
        means = context.learner.learn(groups, Progress(), 1000).means
    assert means["mismatch/kl"] > 1e-3
