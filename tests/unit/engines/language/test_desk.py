"""Who is answered with whom: asks that can share a call do, and chance is never shared by mistake."""

from __future__ import annotations

from operant.engines.language.completion import Prompt, Sampling
from operant.engines.language.desk import Ask, Desk, plan
from operant.engines.language.generate import TorchGenerator
from tests.unit.engines.language.small_models import random_policy

A, B = Prompt((5, 6), 9), Prompt((7, 8), 20)


def test_asks_with_one_manner_share_a_call() -> None:
    calls = plan([Ask([A, B], Sampling(2, seed=1), True), Ask([B], Sampling(2, seed=1), True)])
    assert [(call.prompts, call.sampling) for call in calls] == [([A, B, B], Sampling(2, seed=1))]


def test_other_manners_have_calls_of_their_own() -> None:
    calls = plan([Ask([A], Sampling(seed=1), True), Ask([A], Sampling(seed=2), True), Ask([A], Sampling(2, 0.0), True)])
    assert len(calls) == 3


def test_asks_without_a_seed_share_a_call_and_no_completion() -> None:
    calls = plan([Ask([A], Sampling(2), False), Ask([A, B], Sampling(), False), Ask([B], Sampling(2), False)])
    assert [(call.prompts, call.sampling.n) for call in calls] == [([A, B], 3)]
    shorter = Prompt(A.tokens, 3)
    assert len({call.sampling.seed for call in plan([Ask([A, shorter], Sampling(), False)])}) == 2


def test_every_ask_gets_what_it_would_get_alone() -> None:
    policy = random_policy("llama")
    desk = Desk(TorchGenerator(policy))
    asks = [
        Ask([A, B], Sampling(2, seed=1), True),
        Ask([B], Sampling(3, seed=1), True),
        Ask([B], Sampling(1, 0.0), False),
    ]
    for ask in asks:
        desk.ask(ask)
    alone = TorchGenerator(policy)
    for ask in asks:
        found = ask.answer.result(30)
        assert [[one.tokens for one in row] for row in found] == [
            [one.tokens for one in row] for row in alone.generate(ask.prompts, ask.sampling)
        ]
    desk.close()
    assert not desk._thread.is_alive()
