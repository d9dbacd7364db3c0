"""Groups that are written ahead are never too old, few, and none of their prompts is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import count
from types import SimpleNamespace

import pytest

from operant.engines.language.distributed.async_rollouts import Pipeline
from operant.engines.language.distributed.weight_sync import check_arrival, checksum, pack, trained_weights, unpack
from operant.engines.language.generation import torch_generator as generate
from operant.engines.language.generation.generator import Completion, Prompt, Sampling
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.policy.model import Policy, load_policy
from operant.engines.language.rollouts.single_turn import Rounds
from operant.engines.language.telemetry.prompt_accounting import Witness
from operant.envs.text.mixture import Course, Part
from operant.envs.text.pool import Verifiers
from operant.envs.text.tasks import make_task
from operant.errors import RunError
from operant.run.seeding import Seeds
from operant.spec.settings.language_algorithms import GrpoSpec
from tests.unit.engines.language.small_models import SIZES

SETTINGS = GrpoSpec(group_size=2, batch_size=8, staleness=2)


class Fake:
    """A generator that writes "a", and can be told to be slow to take weights or to fail."""

    def __init__(self) -> None:
        self.version = 0
        self.behind = 0
        self.fault: Exception | None = None
        self.calls = 0

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        self.calls += 1
        if self.fault is not None:
            raise self.fault
        done = Completion((5,), (-1.0,), "a", "stop", max(0, self.version - self.behind))
        return [[done] * sampling.n for _ in prompts]

    def load(self, weights: object, version: int) -> None:
        self.version = version

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy("tiny", tiny=SIZES)


@pytest.fixture
def fake() -> Fake:
    return Fake()


@pytest.fixture
def pipeline(policy: Policy, fake: Fake) -> Iterator[Pipeline]:
    course = Course([Part(make_task("copy", {"style": "bare", "letters": 3}))], "weighted", 0)
    witness = Witness()
    with Verifiers([part.task for part in course.parts]) as verifiers:
        rounds = Rounds(policy, fake, verifiers, "auto", 4, "keep", witness)
        made = Pipeline(course, Seeds(0), SETTINGS, [rounds], witness)
        yield made
        made.close()


def test_no_group_is_older_than_the_limit_and_few_are_under_way(pipeline: Pipeline) -> None:
    pipeline.publish({}, 0)
    pipeline.start(0)
    for update in range(12):
        groups = pipeline.collect(update)
        time.sleep(0.02)
        position, owed = pipeline.state()
        assert len(owed) <= pipeline.room == 8
        assert all(update - group.version <= 2 for group in groups)
        done = {*range(position)} - {*owed}
        assert len(done) == 4 * (update + 1)
        for group in groups:
            pipeline.witness.ledger.end(group.place or 0, "learnt")
        pipeline.publish({}, update + 1)
    assert pipeline.witness.ledger.counts["stale"] == 0


def test_a_stale_group_is_counted_and_written_anew(pipeline: Pipeline, fake: Fake) -> None:
    fake.behind = 3
    pipeline.publish({}, 10)
    pipeline.start(0)
    while not pipeline.witness.ledger.counts["judged"]:
        time.sleep(0.01)
    fake.behind = 0
    groups = pipeline.collect(10)
    counts = pipeline.witness.ledger.counts
    assert {group.version for group in groups} == {10}
    assert counts["stale"] >= 4
    patience = time.monotonic() + 30
    while counts["redone"] < counts["stale"] and time.monotonic() < patience:
        pipeline.collect(10)
    assert counts["stale"] == counts["redone"]


def test_a_resumed_pipeline_begins_with_what_is_owed(pipeline: Pipeline) -> None:
    pipeline.publish({}, 0)
    pipeline.start(100, [3, 5])
    assert [group.place for group in pipeline.collect(0)] == [3, 5, 100, 101]


def test_what_breaks_a_writer_reaches_the_trainer(pipeline: Pipeline, fake: Fake) -> None:
    fake.fault = RunError("the generator is on fire")
    pipeline.publish({}, 0)
    pipeline.start(0)
    with pytest.raises(RunError, match="on fire"):
        pipeline.collect(0)


def test_weights_arrive_whole_or_not_at_all(policy: Policy) -> None:
    parcel = pack(trained_weights(policy), 3)
    other = load_policy("tiny", tiny=SIZES, seed=1)
    with pytest.raises(RunError, match="version 3 did not arrive whole"):
        check_arrival(parcel, other)
    TorchGenerator(other).load(unpack(parcel), 3)
    check_arrival(parcel, other)
    assert checksum(trained_weights(other)) == checksum(trained_weights(policy))


def test_completions_that_are_late_are_left_out_of_their_group(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr(generate, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    course = Course([Part(make_task("copy", {"style": "bare", "letters": 3}))], "weighted", 0)
    generator = TorchGenerator(policy, slots=2, stride=2)
    with Verifiers([part.task for part in course.parts]) as verifiers:
        rounds = Rounds(policy, generator, verifiers, "auto", 8, "keep")
        groups = rounds.play(course.take(0, 6), Sampling(2, seconds=10))
        assert sum(len(group.answers) for group in groups) > 0
        late = [note for group in groups for note in group.errors]
        assert late
        assert set(late) == {"no completion within 10 s"}
        again = rounds.play(course.take(0, 6), Sampling(2))
    fresh = TorchGenerator(policy, slots=2).generate([rounds.prompt(p) for p in course.take(0, 6)], Sampling(2))
    assert [[answer.completion.tokens for answer in group.answers] for group in again] == [
        [each.tokens for each in row] for row in fresh
    ]
