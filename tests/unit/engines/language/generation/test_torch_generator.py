"""The built-in generator: a completion depends on its prompt, seed and number, and on nothing beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from operant.engines.language.generation.generator import Completion, Prompt, Sampling
from operant.engines.language.generation.sampling import chances, draw
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.errors import RunError, UsageError
from tests.unit.engines.language.small_models import KINDS, random_policy

PROMPTS = [Prompt(tuple(range(2, 2 + length)), tokens) for length, tokens in ((3, 9), (7, 4), (5, 20), (1, 12))]


def tokens(groups: list[list[Completion]]) -> list[list[tuple[int, ...]]]:
    return [[one.tokens for one in group] for group in groups]


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("slots", [1, 3, 64])
def test_neighbours_do_not_matter(kind: str, slots: int) -> None:
    policy, sampling = random_policy(kind), Sampling(n=3, seed=8)
    alone = [TorchGenerator(policy).generate([prompt], sampling)[0] for prompt in PROMPTS]
    beside = TorchGenerator(policy, slots=slots, stride=3).generate(PROMPTS, sampling)
    assert tokens(beside) == tokens(alone)
    for group, same in zip(beside, alone, strict=True):
        for one, other in zip(group, same, strict=True):
            np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-5)


def test_a_generator_is_used_again_with_more_and_longer_prompts() -> None:
    policy, sampling = random_policy("qwen3"), Sampling(n=2, seed=8)
    generator = TorchGenerator(policy)
    assert tokens(generator.generate(PROMPTS[1:2], sampling)) == tokens(generator.generate(PROMPTS, sampling))[1:2]


def test_completions_of_a_group_and_of_two_seeds_differ() -> None:
    generator = TorchGenerator(random_policy("llama"))
    first, second = (generator.generate(PROMPTS[2:3], Sampling(n=8, seed=seed))[0] for seed in (1, 2))
    assert len({one.tokens for one in first + second}) > 12


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_is_what_transformers_writes(kind: str) -> None:
    policy = random_policy(kind)
    found = TorchGenerator(policy).generate(PROMPTS, Sampling(temperature=0))
    for prompt, (one,) in zip(PROMPTS, found, strict=True):
        given = torch.tensor([prompt.tokens])
        expected = policy.model.generate(  # pyright: ignore[reportCallIssue]
            given, attention_mask=torch.ones_like(given), do_sample=False, max_new_tokens=prompt.max_tokens
        )
        assert one.tokens == tuple(expected[0, len(prompt.tokens) :].tolist())
        assert one.finish == ("stop" if one.tokens[-1] == 1 else "length")


def test_weights_are_those_at_the_time_of_the_call() -> None:
    policy = random_policy("qwen2")
    generator = TorchGenerator(policy)
    before = generator.generate(PROMPTS, Sampling(temperature=0))
    with torch.no_grad():
        for value in policy.model.parameters():
            value += 0.3 * torch.randn(value.shape, generator=torch.Generator().manual_seed(1))
    generator.load({}, 7)
    after = generator.generate(PROMPTS, Sampling(temperature=0))
    assert tokens(after) != tokens(before)
    assert tokens(after) == tokens(TorchGenerator(policy).generate(PROMPTS, Sampling(temperature=0)))
    assert {one.version for group in after for one in group} == {7}


def test_given_weights_are_copied() -> None:
    own, other = random_policy("llama", seed=1), random_policy("llama", seed=2)
    generator = TorchGenerator(own)
    generator.load(other.model.state_dict(), 3)
    wanted = TorchGenerator(other).generate(PROMPTS, Sampling(temperature=0))
    assert tokens(generator.generate(PROMPTS, Sampling(temperature=0))) == tokens(wanted)
    with pytest.raises(UsageError, match="no weights called nonsense"):
        generator.load({"nonsense": torch.zeros(1)}, 4)


def test_stop_strings_end_a_completion_and_are_cut_from_its_text() -> None:
    policy = random_policy("llama")
    whole = TorchGenerator(policy).generate([Prompt((5, 6, 7), 30)], Sampling(seed=3))[0][0]
    say = policy.tokenizer.decode
    stop = str(say(list(whole.tokens[4:6])))
    found = TorchGenerator(policy, stride=5).generate([Prompt((5, 6, 7), 30, (stop, "never"))], Sampling(seed=3))[0][0]
    assert found.tokens == whole.tokens[:6]
    assert found.finish == "stop"
    assert found.text + stop == say(list(found.tokens))


def test_too_long_for_the_model_is_refused_before_any_work() -> None:
    generator = TorchGenerator(random_policy("tiny"))
    with pytest.raises(UsageError, match="60 tokens and asks for 5, which is more than the model's context of 64"):
        generator.generate([Prompt((3,) * 60, 5)], Sampling())
    with pytest.raises(UsageError, match="prompt 0 has no tokens"):
        generator.generate([Prompt((), 5)], Sampling())


def test_chances_are_uniform_and_those_of_their_own_key() -> None:
    many = chances([1, 2, 2**64 - 1], 20_000)
    np.testing.assert_array_equal(many[1], chances([2], 20_000)[0])
    assert abs(many.mean() - 0.5) < 0.005
    assert abs(np.corrcoef(many)[0, 1]) < 0.02
    assert many.max() < 1


def test_draws_have_the_distribution_that_was_asked_for() -> None:
    logits = torch.tensor([0.0, 1.0, -1.0, 2.0, -50.0])
    chance = torch.from_numpy(chances([4], 40_000)[0])
    rows = logits.expand(40_000, 5)
    cases = {
        Sampling(temperature=2.0): torch.softmax(logits / 2, 0),
        Sampling(top_k=2): torch.softmax(logits[[1, 3]], 0)
        .new_zeros(5)
        .index_put((torch.tensor([1, 3]),), torch.softmax(logits[[1, 3]], 0)),
        Sampling(top_p=0.6): torch.tensor([0.0, 0.0, 0.0, 1.0, 0.0]),
    }
    for sampling, expected in cases.items():
        drawn, logprobs, _ = draw(rows, chance, sampling)
        share = torch.bincount(drawn, minlength=5) / len(drawn)
        torch.testing.assert_close(share, expected, atol=0.01, rtol=0)
        whole = torch.log_softmax(logits / sampling.temperature, 0)
        torch.testing.assert_close(logprobs, whole[drawn])


def test_the_end_of_text_ends_a_row() -> None:
    policy = random_policy("tiny")
    usual = TorchGenerator(policy).generate([Prompt((9, 9), 40)], Sampling(seed=1))[0][0]
    early = replace(policy, eos_ids=(usual.tokens[6],))
    cut = usual.tokens.index(usual.tokens[6]) + 1
    found = TorchGenerator(early).generate([Prompt((9, 9), 40)], Sampling(seed=1))[0][0]
    assert (found.tokens, found.finish) == (usual.tokens[:cut], "stop")


def test_a_listener_hears_the_writing_and_can_end_it() -> None:
    generator, heard = TorchGenerator(random_policy("llama"), stride=2), []

    class Ears:
        follows = True

        def wants(self, prompt: int) -> bool:
            return True

        def progress(self, prompt: int, index: int, tokens: Sequence[int], logprobs: Sequence[float]) -> None:
            assert len(tokens) == len(logprobs)
            heard.append((prompt, index, tuple(tokens)))

        def done(self, prompt: int, index: int, completion: Completion) -> None:
            heard.append((prompt, index, completion.tokens))
            if prompt == 3:
                generator.halt()

    found = generator.generate(PROMPTS[:3], Sampling(n=2), Ears())
    for prompt, group in enumerate(found):
        for index, one in enumerate(group):
            mine = [tokens for at, which, tokens in heard if (at, which) == (prompt, index)]
            assert mine[-1] == one.tokens
            assert all(one.tokens[: len(tokens)] == tokens for tokens in mine)
    assert any(len(tokens) not in (0, len(found[2][0].tokens)) for at, _, tokens in heard if at == 2)
    with pytest.raises(RunError, match="halted"):
        generator.generate([*PROMPTS[:2], PROMPTS[2], Prompt((3,), 1)], Sampling(n=2), Ears())


def test_min_p_leaves_out_what_is_far_less_likely_than_the_likeliest() -> None:
    logits = torch.tensor([[0.0, 1.0, -1.0, 2.0, -50.0]]).expand(2000, 5)
    drawn, _, _ = draw(logits, torch.from_numpy(chances([4], 2000)[0]), Sampling(min_p=0.2))
    assert sorted(set(drawn.tolist())) == [1, 3]
    with pytest.raises(UsageError, match="min_p is 2"):
        TorchGenerator(random_policy("tiny")).generate([Prompt((5,), 1)], Sampling(min_p=2))
