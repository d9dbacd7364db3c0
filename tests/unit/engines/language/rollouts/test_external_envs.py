"""Environments that play themselves and ask the policy at an address, stood in for by threads of this process."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("transformers")

from operant.engines.language.build import TrainingContext
from operant.engines.language.generation.generator import Sampling
from operant.engines.language.learning.samples import samples_of
from operant.engines.language.policy.chat_template import encode, render_turns
from operant.engines.language.rollouts.external_envs import ExternalEnvRollouts
from operant.engines.language.rollouts.types import Group
from operant.engines.language.serving.policy_endpoint import PolicyEndpoint
from operant.envs.text.task import Problem
from operant.envs.verifiers.task import Begun, VerifiersTask
from operant.errors import RunError
from operant.spec.settings.language import DialogueSpec
from tests.unit.engines.language.served_models import fetch, talking_policy

Ask = Callable[..., tuple[int, Any]]
Play = Callable[[Ask, int], dict[str, Any]]


def asker(url: str, session: str) -> Ask:
    """Asks the policy as a rollout does."""

    def ask(*said: str, **wishes: Any) -> tuple[int, Any]:
        roles = ("user", "assistant")
        messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(said)]
        request = Request(f"{url}/chat/completions", headers={"X-Session-ID": session})
        return fetch_as(request, {"model": "policy", "messages": messages, **wishes})

    return ask


def fetch_as(request: Request, body: dict[str, Any]) -> tuple[int, Any]:
    request.data = json.dumps(body).encode()
    try:
        with urlopen(request, timeout=60) as reply:
            return reply.status, json.load(reply)
    except HTTPError as refusal:
        with refusal:
            return refusal.code, json.load(refusal)


def text_of(reply: tuple[int, Any]) -> str:
    assert reply[0] == 200, reply
    return reply[1]["choices"][0]["message"]["content"]


class Pretended(VerifiersTask):
    """An environment whose rollouts are threads; `rollout` gets a way to ask and the rollout's number."""

    def __init__(self, rollout: Play) -> None:
        super().__init__("pretended")
        self.rollout = rollout
        self.dropped = 0

    def begin(self, problem: Problem, n: int, url: str, model: str, sampling: Mapping[str, Any]) -> Begun:
        answer: Future[dict[str, Any]] = Future()
        rows: dict[int, dict[str, Any]] = {}

        def run(number: int) -> None:
            session = uuid.uuid4().hex
            empty = {"session": session, "opening": [], "messages": [], "parts": {}, "error": None, "truncated": False}
            rows[number] = {**empty, **self.rollout(asker(url, session), number)}
            if len(rows) == n and not answer.done():
                answer.set_result({"rollouts": [rows[at] for at in range(n)]})

        for number in range(n):
            threading.Thread(target=run, args=(number,), daemon=True).start()
        return Begun(self, 1, answer)  # pyright: ignore[reportArgumentType]

    def drop(self, ticket: int) -> None:
        self.dropped += ticket


def played(
    context: TrainingContext, rollout: Play, sampling: Sampling, problems: int = 1, **settings: Any
) -> list[Group]:
    task = Pretended(rollout)
    external = ExternalEnvRollouts(context.worker, {task.name: task}, DialogueSpec(**settings))
    asked = [Problem(f"pretended/train/{at}", task.name, "ab", {"split": "train", "row": at}) for at in range(problems)]
    return external.rollout(asked, sampling)


def two_turns(ask: Ask, number: int) -> dict[str, Any]:
    first = text_of(ask("ab"))
    second = text_of(ask("ab", first, "cd"))
    told = [{"role": "assistant", "text": first}, {"role": "user", "text": "cd"}, {"role": "assistant", "text": second}]
    return {"reward": number / 4, "messages": told, "parts": {"length": float(len(first))}}


def test_steps_are_what_was_drawn_and_one_goes_on_where_the_other_ended(context: TrainingContext) -> None:
    (group,) = played(context, two_turns, Sampling(4, seed=5))
    assert sorted(group.rewards) == [0.0, 0.25, 0.5, 0.75]
    assert not group.errors
    for answer in group.answers:
        first, second = answer.steps
        assert first.prompt == encode("ab", context.policy)
        assert (
            second.prompt[: len(first.prompt) + len(first.completion.tokens)] == first.prompt + first.completion.tokens
        )
        assert [turn.tokens for turn in answer.turns] == [
            len(first.completion.tokens),
            0,
            len(second.completion.tokens),
        ]
        (sample, logprobs, _), *others = samples_of(answer)
        assert not others
        assert len(logprobs) == len(sample.places) == answer.length
    assert len({answer.steps[0].completion.tokens for answer in group.answers}) > 1


def test_a_branching_answer_is_a_sample_for_every_step(context: TrainingContext) -> None:
    (group,) = played(context, two_turns, Sampling(2), strategy="branching")
    assert [len(samples_of(answer)) for answer in group.answers] == [2, 2]


def test_the_same_seed_gives_the_same_rollouts_whoever_comes_first(context: TrainingContext) -> None:
    def tokens() -> list[list[tuple[int, ...]]]:
        groups = played(context, two_turns, Sampling(4, seed=7), problems=3, concurrency=12)
        return [[step.completion.tokens for answer in group.answers for step in answer.steps] for group in groups]

    assert tokens() == tokens()


def test_groups_are_learnt_from(context: TrainingContext) -> None:
    from operant.run.progress import Progress

    groups = played(context, two_turns, Sampling(4, seed=5), problems=2)
    report = context.learner.learn(groups, Progress(), 1000)
    assert report.steps == 1
    assert abs(report.means["mismatch/kl"]) < 1e-6


def test_errors_are_counted_apart_from_scores(context: TrainingContext) -> None:
    def rollout(ask: Ask, number: int) -> dict[str, Any]:
        ask("ab")
        return [{"reward": 1.0}, {"reward": 0.5, "error": "the sandbox died"}, {"reward": float("nan")}][number]

    (group,) = played(context, rollout, Sampling(3))
    assert group.rewards == [1.0]
    assert sorted(group.errors) == ["the environment gave the reward nan", "the sandbox died"]


def test_a_reward_for_nothing_said_is_an_error(context: TrainingContext) -> None:
    (group,) = played(context, lambda ask, number: {"reward": 1.0}, Sampling(2))
    assert not group.answers
    assert group.errors == ("the environment gave a reward without asking the policy",) * 2


def test_what_is_late_is_left_out(context: TrainingContext) -> None:
    over = threading.Event()

    def rollout(ask: Ask, number: int) -> dict[str, Any]:
        over.wait(20)
        return {"reward": 1.0}

    (group,) = played(context, rollout, Sampling(2, seconds=0.2))
    over.set()
    assert group.errors == ("no rollout within 0.2 s",) * 2


def test_a_full_context_is_refused_in_the_words_that_clients_know(context: TrainingContext) -> None:
    replies: list[tuple[int, Any]] = []

    def rollout(ask: Ask, number: int) -> dict[str, Any]:
        ask("ab")
        replies.append(ask("x" * context.policy.context))
        return {"reward": 0.5, "truncated": True}

    (group,) = played(context, rollout, Sampling(1))
    assert replies[0][0] == 400
    assert "this model's maximum context length is 48 tokens" in replies[0][1]["error"]["message"]
    assert group.answers[0].cut


def test_a_completion_has_the_room_that_is_left(context: TrainingContext) -> None:
    context.worker.max_tokens = None
    (group,) = played(context, lambda ask, number: {"reward": float(ask("x" * 45)[0])}, Sampling(1))
    assert group.rewards == [200.0]
    assert group.answers[0].length <= 3


def test_a_failure_of_the_generator_reaches_guest_and_trainer(
    context: TrainingContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> object:
        raise RunError("the generator was halted while it wrote")

    heard: SimpleQueue[tuple[int, Any]] = SimpleQueue()

    def rollout(ask: Ask, number: int) -> dict[str, Any]:
        heard.put(ask("ab"))
        return {"reward": 0.0}

    monkeypatch.setattr(context.worker.generator, "generate", broken)
    with pytest.raises(RunError, match="halted"):
        played(context, rollout, Sampling(1))
    assert "halted" in heard.get(timeout=20)[1]["error"]["message"]


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"n": 2}, "one completion at a time"),
        ({"stream": True}, "whole"),
        ({"logit_bias": {}}, "no such field"),
        ({"tools": [{"type": "function"}]}, "no chat template"),
    ],
)
def test_what_cannot_be_had_is_refused(context: TrainingContext, wishes: dict[str, Any], words: str) -> None:
    replies: list[tuple[int, Any]] = []

    def rollout(ask: Ask, number: int) -> dict[str, Any]:
        replies.append(ask("ab", **wishes))
        return {"reward": 0.0}

    played(context, rollout, Sampling(1))
    assert replies[0][0] == 400
    assert words in replies[0][1]["error"]["message"]


def test_an_address_that_is_no_groups_is_refused(context: TrainingContext) -> None:
    with PolicyEndpoint(context.policy, "auto") as endpoint:
        root = endpoint.open_group(3, 0, 4)
        assert fetch(f"{root}/models")[1]["data"][0]["id"] == "policy"
        status, body = fetch(
            root.replace("/3/", "/4/") + "/chat/completions", {"messages": [{"role": "user", "content": "a"}]}
        )
    assert (status, body["error"]["message"]) == (404, "no group 4 is under way")


def test_a_chat_template_goes_on_too() -> None:
    policy = talking_policy()
    turns = [
        {"role": "user", "content": "ab"},
        {"role": "assistant", "content": "cd"},
        {"role": "user", "content": "ef"},
    ]
    assert render_turns(turns, policy) == "[u]ab[a]cd[u]ef[a]"
    assert render_turns([{"role": "system", "content": "be"}, *turns], policy, "raw").startswith("be\n\nabcd")
