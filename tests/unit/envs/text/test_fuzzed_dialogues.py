"""VectorEnv without tools hear the same fuzzed messages as those with tools, and answer all of them."""

from __future__ import annotations

import pytest

from operant.envs.text.dialogue import DialogueTask, Message, Response
from operant.envs.text.tasks import make_task
from operant.envs.text.verify_worker import verify
from tests.unit.envs.research.messages import Messages

ENDLESS = ("9" * 5_000, "\u0663" * 5_000, "\u00b2", "action " + "1" * 10_000)


@pytest.mark.parametrize("name", ["guess", "hackmatrix_game"])
def test_fuzzed_messages_are_answered(name: str) -> None:
    task, messages = make_task(name, {}), Messages(3)
    assert isinstance(task, DialogueTask)
    problem = task.problems("train")[0]
    dialogue = task.begin(problem, 0)
    for text in (*ENDLESS, *(messages.next()[1] for _ in range(300))):
        response = dialogue.hear(text)
        for message in response.messages:
            message.text.encode()
        if response.done:
            dialogue = task.begin(problem, 0)


@pytest.mark.parametrize("name", ["arithmetic", "countdown", "largest", "count_letters", "sort", "copy", "hackmatrix"])
def test_fuzzed_answers_are_judged(name: str) -> None:
    task, messages = make_task(name, {}), Messages(4)
    problem = task.problems("train")[0]
    for text in (*ENDLESS, *(messages.next()[1] for _ in range(200))):
        assert verify(task, problem, text).outcome != "error", text[:200]


def test_words_of_a_world_can_always_be_encoded() -> None:
    assert Message("tool", "a\ud800b").text == "a\ufffdb"
    assert Response(fault="\udfff").fault == "\ufffd"
