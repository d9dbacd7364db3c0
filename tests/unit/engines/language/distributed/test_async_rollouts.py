"""Groups that are written ahead are never too old, few, and none of their prompts is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from operant.engines.language.distributed.async_rollouts import AsyncRollouts
from operant.engines.language.distributed.weight_sync import (
    check_received,
    checksum,
    deserialize,
    serialize,
    trained_weights,
)
from operant.engines.language.generation import torch_generator as generate
from operant.engines.language.generation.generator import Completion, Probe, Prompt, Sampling
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.policy.model import Policy, load_policy
from operant.engines.language.rollouts.single_turn import RolloutWorker
from operant.engines.language.rollouts.store import RolloutStore
from operant.engines.language.telemetry.telemetry import Telemetry
from operant.envs.text.mixture import Part, ProblemSampler
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

    def probe(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Probe]:
        return [Probe("the fake", self.version, None, self.generate(prompts, sampling))]

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy("tiny", tiny=SIZES)


@pytest.fixture
def fake() -> Fake:
    return Fake()


@pytest.fixture
def async_rollouts(policy: Policy, fake: Fake) -> Iterator[AsyncRollouts]:
    sampler = ProblemSampler([Part(make_task("copy", {"style": "bare", "letters": 3}))], "weighted", 0)
    telemetry = Telemetry()
    with Verifiers([part.task for part in sampler.parts]) as verifiers:
        worker = RolloutWorker(policy, fake, verifiers, "auto", 4, "keep", telemetry)
        made = AsyncRollouts(sampler, Seeds(0), SETTINGS, [worker], telemetry)
        yield made
        made.close()


def test_no_group_is_older_than_the_limit_and_few_are_under_way(async_rollouts: AsyncRollouts) -> None:
    async_rollouts.publish({}, 0)
    async_rollouts.start(0)
    for update in range(12):
        groups = async_rollouts.collect(update)
        time.sleep(0.02)
        position, owed = async_rollouts.state()
        assert len(owed) <= async_rollouts.room == 8
        assert all(update - group.version <= 2 for group in groups)
        done = {*range(position)} - {*owed}
        assert len(done) == 4 * (update + 1)
        for group in groups:
            async_rollouts.telemetry.accounting.end(group.place or 0, "trained")
        async_rollouts.publish({}, update + 1)
    assert async_rollouts.telemetry.accounting.counts["stale"] == 0


def test_a_stale_group_is_counted_and_written_anew(async_rollouts: AsyncRollouts, fake: Fake) -> None:
    fake.behind = 3
    async_rollouts.publish({}, 10)
    async_rollouts.start(0)
    while not async_rollouts.telemetry.accounting.counts["graded"]:
        time.sleep(0.01)
    fake.behind = 0
    groups = async_rollouts.collect(10)
    counts = async_rollouts.telemetry.accounting.counts
    assert {group.version for group in groups} == {10}
    assert counts["stale"] >= 4
    patience = time.monotonic() + 30
    while counts["redone"] < counts["stale"] and time.monotonic() < patience:
        async_rollouts.collect(10)
    assert counts["stale"] == counts["redone"]


def test_a_resumed_pipeline_begins_with_what_is_owed(async_rollouts: AsyncRollouts) -> None:
    async_rollouts.publish({}, 0)
    async_rollouts.start(100, [3, 5])
    assert [group.place for group in async_rollouts.collect(0)] == [3, 5, 100, 101]


def test_groups_are_used_in_the_order_of_their_prompts_whoever_is_done_first(policy: Policy) -> None:
    """Two workers, the first of which is slow: its prompts come first all the same."""
    sampler = ProblemSampler([Part(make_task("copy", {"style": "bare", "letters": 3}))], "weighted", 0)
    telemetry, slow, quick = Telemetry(), Fake(), Fake()
    generate = slow.generate

    def slowly(prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        time.sleep(0.05)
        return generate(prompts, sampling)

    slow.generate = slowly  # pyright: ignore[reportAttributeAccessIssue]
    with Verifiers([part.task for part in sampler.parts]) as verifiers:
        workers = [RolloutWorker(policy, each, verifiers, "auto", 4, "keep", telemetry) for each in (slow, quick)]
        made = AsyncRollouts(sampler, Seeds(0), SETTINGS, workers, telemetry)
        made.publish({}, 0)
        made.start(0)
        used = [group.place for _ in range(5) for group in made.collect(0)]
        made.close()
    assert used == list(range(20))


def test_a_resumed_pipeline_uses_what_is_stored(async_rollouts: AsyncRollouts, fake: Fake, tmp_path: Path) -> None:
    async_rollouts.use(RolloutStore(tmp_path))
    async_rollouts.publish({}, 0)
    async_rollouts.start(0)
    first = async_rollouts.collect(0)
    async_rollouts.close()
    assert {path.stem for path in tmp_path.iterdir()} >= {"0", "1", "2", "3"}
    telemetry = Telemetry()
    again = AsyncRollouts(async_rollouts.sampler, Seeds(0), SETTINGS, async_rollouts._workers, telemetry)
    again.use(RolloutStore(tmp_path))
    again.publish({}, 0)
    again.start(0)
    assert again.collect(0) == first
    again.close()
    assert telemetry.accounting.counts["restored"] >= 4


def test_what_breaks_a_writer_reaches_the_trainer(async_rollouts: AsyncRollouts, fake: Fake) -> None:
    fake.fault = RunError("the generator is on fire")
    async_rollouts.publish({}, 0)
    async_rollouts.start(0)
    with pytest.raises(RunError, match="on fire"):
        async_rollouts.collect(0)


def test_weights_arrive_whole_or_not_at_all(policy: Policy) -> None:
    serialized = serialize(trained_weights(policy), 3)
    other = load_policy("tiny", tiny=SIZES, seed=1)
    with pytest.raises(RunError, match="version 3 did not arrive whole"):
        check_received(serialized, other)
    TorchGenerator(other).load(deserialize(serialized), 3)
    check_received(serialized, other)
    assert checksum(trained_weights(other)) == checksum(trained_weights(policy))


def test_completions_that_are_late_are_left_out_of_their_group(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr(generate, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    sampler = ProblemSampler([Part(make_task("copy", {"style": "bare", "letters": 3}))], "weighted", 0)
    generator = TorchGenerator(policy, slots=2, stride=2)
    with Verifiers([part.task for part in sampler.parts]) as verifiers:
        worker = RolloutWorker(policy, generator, verifiers, "auto", 8, "keep")
        groups = worker.rollout(sampler.take(0, 6), Sampling(2, seconds=10))
        assert sum(len(group.answers) for group in groups) > 0
        late = [note for group in groups for note in group.errors]
        assert late
        assert set(late) == {"no completion within 10 s"}
        again = worker.rollout(sampler.take(0, 6), Sampling(2))
    fresh = TorchGenerator(policy, slots=2).generate([worker.prompt(p) for p in sampler.take(0, 6)], Sampling(2))
    assert [[answer.completion.tokens for answer in group.answers] for group in again] == [
        [each.tokens for each in row] for row in fresh
    ]
