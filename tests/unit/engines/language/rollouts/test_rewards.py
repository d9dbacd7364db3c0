"""The reward that is learnt from: the verifier's score and the values of reward functions, by weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch")

from operant.engines.language.generation.generator import Completion, Prompt, Step
from operant.engines.language.rollouts.rewards import RewardScorer
from operant.engines.language.rollouts.types import Answer, Group
from operant.envs.text.rewards import RewardFunctions, RewardRequest
from operant.envs.text.task import Problem, Verdict
from operant.run.episode import Turn
from operant.spec.settings.rewards import RegexSpec, RewardSpec, SoftOverlongSpec

FUNCTIONS = (
    RegexSpec(pattern="ab*", weight=0.5, label="form"),
    SoftOverlongSpec(max_length=4, buffer=2, weight=0.1),
)


class Pool:
    """Computes here, and remembers what it was asked for."""

    def __init__(self, functions: Sequence[RewardSpec]) -> None:
        self.functions = RewardFunctions([each.model_dump() for each in functions])
        self.requests: list[RewardRequest] = []

    def reward_all(self, requests: Sequence[RewardRequest], within: Any = None, beat: Any = None) -> list[Any]:
        self.requests += requests
        return [["boo"] if self.broken(each) else self.functions.compute(each) for each in requests]

    def broken(self, request: RewardRequest) -> bool:
        return request.function == 0 and request.inputs[0].completion == "fail"

    def verify_all(self, answers: Any, within: Any = None, beat: Any = None) -> list[Any]:
        raise NotImplementedError

    def close(self) -> None: ...


def group(*texts: str, turns: tuple[Turn, ...] = ()) -> Group:
    problem = Problem("t/train/0", "t", "ask", "abb")
    answers = (
        Answer(
            (Step((1,), Completion(tuple(range(len(text))), (), text, "stop")),),
            Verdict(1.0, "right", {"x": 2.0}),
            1.0,
            turns,
        )
        for text in texts
    )
    return Group(problem, Prompt((1,), 8), tuple(answers), ("an error",))


def test_weights_parts_and_errors():
    pool = Pool(FUNCTIONS)
    (scored,) = RewardScorer(FUNCTIONS, 2.0, pool).score([group("abb", "no", "fail")])
    assert scored.rewards == pytest.approx([2 + 0.5 - 0.05, 2.0])
    assert scored.answers[0].verdict.parts == {
        "x": 2.0, "verifier": 1.0, "form": 1.0, "soft_overlong": -0.5,
    }  # fmt: skip
    assert scored.errors == ("an error", "reward function form failed: boo")
    assert scored.reasons == ("error", "reward_function")


def test_in_the_place_of_the_verifier():
    (scored,) = RewardScorer(FUNCTIONS[:1], 0.0, Pool(FUNCTIONS[:1])).score([group("a", "b")])
    assert scored.rewards == [0.5, 0.0]
    assert scored.answers[0].verdict.score == 1.0


def test_a_dialogue_is_seen_whole():
    pool = Pool(FUNCTIONS[:1])
    turns = (Turn("user", "hello", 2), Turn("assistant", "a", 1), Turn("user", "go on", 2), Turn("assistant", "ab", 1))
    RewardScorer(FUNCTIONS[:1], 1.0, pool).score([group("ab", turns=turns)])
    (seen,) = pool.requests[0].inputs
    assert seen.completion == "ab"
    assert [each["role"] for each in seen.conversation] == ["user", "assistant", "user", "assistant"]
    assert (seen.answer, seen.score, seen.length) == ("abb", 1.0, 2)
