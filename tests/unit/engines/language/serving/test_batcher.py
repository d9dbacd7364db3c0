"""Who is answered with whom: requests that can share a batch do, and chance is never shared by mistake."""

from __future__ import annotations

import threading
from typing import Any

from operant.engines.language.generation.generator import Prompt, Sampling
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.serving.batcher import BatchRequest, RequestBatcher, plan
from tests.unit.engines.language.small_models import random_policy

A, B = Prompt((5, 6), 9), Prompt((7, 8), 20)


def test_requests_with_one_manner_share_a_batch() -> None:
    batches = plan([BatchRequest([A, B], Sampling(2, seed=1), True), BatchRequest([B], Sampling(2, seed=1), True)])
    assert [(batch.prompts, batch.sampling) for batch in batches] == [([A, B, B], Sampling(2, seed=1))]


def test_other_manners_have_batches_of_their_own() -> None:
    wanted = [Sampling(seed=1), Sampling(seed=2), Sampling(2, 0.0)]
    assert len(plan([BatchRequest([A], sampling, True) for sampling in wanted])) == 3


def test_requests_without_a_seed_share_a_batch_and_no_completion() -> None:
    requests = [BatchRequest([A], Sampling(2), False), BatchRequest([A, B], Sampling(), False)]
    (batch,) = plan(requests)
    assert [prompt.tokens for prompt in batch.prompts] == [A.tokens, A.tokens, A.tokens, B.tokens]
    assert len({prompt.salt for prompt in batch.prompts}) == 4
    assert batch.sampling.n == 1
    assert [owner[1:] for owner in batch.owners] == [(0, 0), (0, 1), (0, 0), (1, 0)]


def test_every_request_gets_what_it_would_get_alone() -> None:
    policy = random_policy("llama")
    batcher = RequestBatcher(TorchGenerator(policy))
    requests = [
        BatchRequest([A, B], Sampling(2, seed=1), True),
        BatchRequest([B], Sampling(3, seed=1), True),
        BatchRequest([B], Sampling(1, 0.0), False),
    ]
    for request in requests:
        batcher.submit(request)
    alone = TorchGenerator(policy)
    for request in requests:
        found = request.answer.result(30)
        assert [[one.tokens for one in row] for row in found] == [
            [one.tokens for one in row] for row in alone.generate(request.prompts, request.sampling)
        ]
    batcher.close()
    assert not batcher._thread.is_alive()


def test_what_is_cancelled_is_given_up_and_the_others_get_what_they_would_get() -> None:
    policy = random_policy("llama")
    generator = TorchGenerator(policy, slots=2, stride=1)
    long = Prompt((9, 10, 11), 60)
    left = BatchRequest([long] * 8, Sampling(4, seed=1), True)
    stays = BatchRequest([A, B], Sampling(4, seed=1), True)
    steps: list[Any] = []
    begun = threading.Event()

    def beat() -> None:
        steps.append(None)
        if len(steps) == 3:
            begun.set()
            left.answer.cancel()

    generator.beat = beat
    batcher = RequestBatcher(generator)
    for request in (left, stays):
        batcher.submit(request)
    found = stays.answer.result(30)
    batcher.close()
    expected = TorchGenerator(policy).generate(stays.prompts, stays.sampling)
    assert [[one.tokens for one in row] for row in found] == [[one.tokens for one in row] for row in expected]
    # Two rows hold 8 completions of at most 20 tokens; the 32 of 60 that were given up would need 960 steps more.
    assert begun.is_set()
    assert len(steps) < 200
