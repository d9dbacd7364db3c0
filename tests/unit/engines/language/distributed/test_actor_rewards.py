"""Reward functions and verdicts by way of the verifier actors, which are called here without Ray."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from operant.engines.language.distributed.ray_actors import VerifierWorker
from operant.engines.language.distributed.replicas import ActorVerifiers
from operant.engines.language.telemetry.telemetry import Telemetry
from operant.envs.text.rewards import RewardInput, RewardRequest
from operant.envs.text.tasks import make_task

REWARDS = [{"name": "regex", "pattern": "a+"}]


class Handle:
    """An actor in this process."""

    def __init__(self, name: str, worker: VerifierWorker, seconds: float = 0.0) -> None:
        self.name, self.worker, self.seconds = name, worker, seconds
        self.beat: Callable[[], object] = lambda: None

    def call(self, method: str, jobs: list[Any], lost: Callable[[], object]) -> list[Any]:
        time.sleep(self.seconds)
        return getattr(self.worker, method)(jobs)

    def close(self) -> None:
        self.worker.pool.close()


@pytest.fixture(scope="module")
def worker() -> Iterator[VerifierWorker]:
    made = VerifierWorker([make_task("copy", {"style": "bare"}).recipe], None, REWARDS)
    yield made
    made.pool.close()


def verifiers(worker: VerifierWorker, seconds: float = 0.0) -> ActorVerifiers:
    handles: Any = [Handle(f"verifier {number}", worker, seconds) for number in range(2)]
    return ActorVerifiers(handles, Telemetry())


def requests(*texts: str) -> list[RewardRequest]:
    return [
        RewardRequest(0, f"copy/train/{n}", (RewardInput("", text, "", [], 1, 0.0),)) for n, text in enumerate(texts)
    ]


def test_values_come_in_the_order_of_the_requests(worker: VerifierWorker):
    texts = [("a" if number % 3 else "b") * (number + 1) for number in range(20)]
    found = verifiers(worker).reward_all(requests(*texts))
    assert found == [[float("b" not in text)] for text in texts]
    assert worker.beats >= 20


def test_verdicts_come_in_the_order_of_the_answers(worker: VerifierWorker):
    task = make_task("copy", {"style": "bare"})
    problems = task.problems("train")[:10]
    answers = [(problem, str(task.gold(problem)) if number % 2 else "?") for number, problem in enumerate(problems)]
    scores = [verdict.score for verdict in verifiers(worker).verify_all(answers)]
    assert [score == 1.0 for score in scores] == [False, True] * 5


def test_what_is_late_is_told(worker: VerifierWorker):
    slow = verifiers(worker, seconds=0.5)
    assert slow.reward_all(requests("a"), within=0.05) == [["no value within 0.05 s"]]
    ((problem, *_),) = [make_task("copy", {"style": "bare"}).problems("train")[:1]]
    assert slow.verify_all([(problem, "?")], within=0.05)[0].note == "no verdict within 0.05 s"
