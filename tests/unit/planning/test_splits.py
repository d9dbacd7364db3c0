"""Which split is best, where that can be computed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from operant.errors import UsageError
from operant.planning.outcome import simulate
from operant.planning.splits import SplitSearch
from operant.planning.workload import Machines, Split, Workload
from operant.run.rates import Rates

WORK = Workload(prompts=84, group_size=1, staleness=8, pass_tokens=10)


def rates(generate: float, train: float, verify: float = 0.0) -> Rates:
    return Rates(generate / 10, 0.0, train / 10, verify, lengths=(10,), weight_bytes=0)


@pytest.mark.parametrize(("generate", "train", "trainers"), [(3.0, 1.0, 2), (1.0, 1.0, 4), (1.0, 3.0, 6)])
def test_gpus_are_divided_as_the_work_is(generate: float, train: float, trainers: int) -> None:
    found = SplitSearch(WORK, rates(generate, train), Machines(gpus=8)).run()
    apart = next(outcome for outcome in found if not outcome.split.colocated)
    assert apart.split.trainers == trainers
    assert apart.split.generators == 8 - trainers
    # Both parts then keep up: neither waits for more than the edges of its shares.
    assert max(apart.idle["trainers"], apart.idle["generators"]) < 0.1


def test_the_best_comes_first_and_turns_are_among_the_splits() -> None:
    found = SplitSearch(WORK, rates(3.0, 1.0), Machines(gpus=8)).run()
    speeds = [outcome.samples_per_second for outcome in found]
    assert speeds == sorted(speeds, reverse=True)
    assert any(outcome.split.colocated and outcome.split.trainers == 8 for outcome in found)
    # No split does more than all GPUs at work all the time: 8 / (3 + 1) samples a second.
    assert speeds[0] <= 8 / (3.0 + 1.0) * 1.001


def test_as_many_verifiers_as_keep_up() -> None:
    own, machines = rates(3.0, 1.0, verify=2.0), Machines(gpus=8)
    best = SplitSearch(WORK, own, machines).run()[0]
    ample = simulate(WORK, own, machines, replace(best.split, verifiers=84))
    half = simulate(WORK, own, machines, replace(best.split, verifiers=best.split.verifiers // 2))
    assert best.samples_per_second >= 0.99 * ample.samples_per_second > half.samples_per_second
    # Two samples a second at two seconds each are the work of four.
    assert best.split.verifiers >= 4


def test_what_is_asked_for_is_not_varied() -> None:
    (found,) = SplitSearch(WORK, rates(3.0, 1.0), Machines(gpus=8), trainers=1, generators=3, verifiers=2).run()
    assert found.split == Split(1, 3, 2)


def test_more_than_there_are_is_refused() -> None:
    with pytest.raises(UsageError, match="do not fit 8 GPUs"):
        SplitSearch(WORK, rates(3.0, 1.0), Machines(gpus=8), trainers=4, generators=5).run()
    with pytest.raises(UsageError, match="9 trainers do not fit 8 GPUs"):
        SplitSearch(WORK, rates(3.0, 1.0), Machines(gpus=8), trainers=9).run()


def test_one_gpu_takes_turns() -> None:
    (found,) = SplitSearch(WORK, rates(3.0, 1.0), Machines(gpus=1), verifiers=1).run()
    assert found.split.colocated
    assert found.samples_per_second == pytest.approx(1 / 4)
