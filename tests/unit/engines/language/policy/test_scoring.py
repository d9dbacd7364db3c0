"""Likelihoods of texts: those that the model itself gives, and those that the trainer sees."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from operant.engines.language.generation.generator import Prompt, Sampling
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.policy.scoring import score_texts
from operant.errors import UsageError
from tests.unit.engines.language.small_models import KINDS, random_policy

TEXTS = [(5, 6, 7, 8, 9), (40,), (11, 12), tuple(range(2, 60))]


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_the_models_own(kind: str) -> None:
    policy = random_policy(kind)
    for text, scored in zip(TEXTS, score_texts(policy, TEXTS, 0.5, top=3, chunk=1000), strict=True):
        with torch.no_grad():
            logs = (policy.model(input_ids=torch.tensor([text])).logits[0].float() / 0.5).log_softmax(-1)
        assert scored.logprobs[0] is None
        assert scored.best[0] == ()
        expected = [float(logs[place - 1, text[place]]) for place in range(1, len(text))]
        np.testing.assert_allclose(np.array(scored.logprobs[1:], float), expected, atol=1e-4)
        for place in range(1, len(text)):
            assert scored.best[place][0][0] == int(logs[place - 1].argmax())
            np.testing.assert_allclose(
                [value for _, value in scored.best[place]], logs[place - 1].topk(3).values, atol=1e-4
            )


def test_they_are_those_of_the_generator() -> None:
    policy = random_policy("llama")
    prompt = Prompt((5, 6, 7), 20)
    (one,) = TorchGenerator(policy).generate([prompt], Sampling(1, 0.7, seed=2))[0]
    (scored,) = score_texts(policy, [(*prompt.tokens, *one.tokens)], 0.7)
    np.testing.assert_allclose(np.array(scored.logprobs[3:], float), one.logprobs, atol=1e-5)


def test_a_text_beyond_the_context_is_refused() -> None:
    policy = random_policy("llama")
    assert len(score_texts(policy, [(5,) * 65])[0].logprobs) == 65  # the last one is not read
    with pytest.raises(UsageError, match="text 1 has 66 tokens"):
        score_texts(policy, [(5,), (5,) * 66])
