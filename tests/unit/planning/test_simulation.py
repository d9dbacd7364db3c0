"""The simulation against cases of queueing that have a closed form."""

from __future__ import annotations

from dataclasses import replace

import pytest

from operant.planning.outcome import losses, simulate
from operant.planning.simulation import TrainingSimulation
from operant.planning.workload import Machines, Split, Workload
from operant.run.rates import Rates

GENERATE, TRAIN = 3.0, 2.0
LENGTH = 10


def rates(generate: float = GENERATE, train: float = TRAIN, **others: float) -> Rates:
    """A completion of 10 tokens takes so long to write and to learn from."""
    bare = Rates(generate / LENGTH, 0.0, train / LENGTH, 0.0, lengths=(LENGTH,), weight_bytes=0)
    return replace(bare, **others)  # pyright: ignore[reportArgumentType]


ONE = Workload(prompts=1, group_size=1)
APART = Machines(nodes=16, gpus=1)
TAIL = (1, 2, 3, 5, 8, 13, 21, 34, 55, 200)


def test_synchronous_rounds_take_the_sum_of_their_parts() -> None:
    own = rates(verify_seconds=0.5, publish_seconds=0.25, load_seconds=0.125, round_seconds=0.0625)
    found = simulate(ONE, own, APART, Split(1, 1, 1))
    assert found.round_seconds == pytest.approx(3 + 2 + 0.5 + 0.25 + 0.125 + 0.0625)
    assert found.samples_per_second == pytest.approx(1 / 5.9375)
    assert found.idle["trainers"] == pytest.approx(1 - 2.3125 / 5.9375)
    assert found.idle["generators"] == pytest.approx(1 - 3.125 / 5.9375)
    assert found.most_staleness == 0


@pytest.mark.parametrize(("generate", "train"), [(3.0, 2.0), (2.0, 3.0), (1.0, 1.0)])
def test_a_pipeline_of_two_stages_goes_at_the_pace_of_the_slower(generate: float, train: float) -> None:
    found = simulate(replace(ONE, staleness=1), rates(generate, train), APART, Split(1, 1, 1))
    slower = max(generate, train)
    assert found.round_seconds == pytest.approx(slower)
    assert found.idle["trainers"] == pytest.approx(1 - train / slower)
    assert found.most_staleness <= 1


def test_on_one_core_the_stages_of_a_pipeline_add_up() -> None:
    found = simulate(replace(ONE, staleness=1), rates(), Machines(gpus=2, cores=1), Split(1, 1, 1), rounds=60)
    assert found.round_seconds == pytest.approx(GENERATE + TRAIN, rel=0.02)


def test_generators_share_a_round() -> None:
    work = Workload(prompts=8, group_size=1)
    found = simulate(work, rates(), APART, Split(1, 4, 1))
    assert found.round_seconds == pytest.approx(2 * GENERATE + 8 * TRAIN)
    # Three generators cannot do it quicker than in shares of 3, 3 and 2.
    assert simulate(work, rates(), APART, Split(1, 3, 1)).round_seconds == pytest.approx(3 * GENERATE + 8 * TRAIN)


def test_generators_on_too_few_cores_slow_each_other_down() -> None:
    work = Workload(prompts=4, group_size=1)
    found = simulate(work, rates(), Machines(gpus=8, cores=2), Split(1, 4, 1))
    assert found.round_seconds == pytest.approx(4 * GENERATE / 2 + 4 * TRAIN)


def test_verifiers_are_a_pool() -> None:
    work = Workload(prompts=4, group_size=6)
    own = rates(generate=0.0, train=0.0, verify_seconds=1.0)
    assert simulate(work, own, APART, Split(1, 4, 3)).round_seconds == pytest.approx(24 / 3)
    assert simulate(work, own, APART, Split(1, 4, 24)).round_seconds == pytest.approx(1)


def test_asynchronous_workers_wait_for_a_full_pool() -> None:
    work = Workload(prompts=4, group_size=1, staleness=4)
    found = simulate(work, rates(generate=0.5, train=0.0, verify_seconds=2.0), APART, Split(1, 4, 1))
    assert found.samples_per_second == pytest.approx(1 / 2)
    assert found.idle["verifiers"] == pytest.approx(0)


def test_a_group_is_done_when_its_longest_completion_is() -> None:
    work = Workload(prompts=1, group_size=64)
    own = replace(rates(train=0.0), token_seconds=0.0, step_seconds=0.1, lengths=TAIL)
    # 1 - 0.9**64 of the groups have one of 200.
    assert simulate(work, own, APART, Split(1, 1, 1), rounds=200).round_seconds == pytest.approx(20, rel=0.02)


@pytest.mark.parametrize("staleness", [1, 2, 4, 8])
@pytest.mark.parametrize("train", [0.1, 1.0, 10.0])
def test_nothing_is_older_than_allowed(staleness: int, train: float) -> None:
    work = Workload(prompts=4, group_size=4, staleness=staleness)
    own = replace(rates(train=train), lengths=TAIL)
    found = simulate(work, own, APART, Split(1, 6, 2), rounds=40)
    assert found.most_staleness <= staleness


def test_behind_a_slow_trainer_the_queue_is_full() -> None:
    found = simulate(replace(ONE, staleness=4), rates(generate=0.1, train=5.0), APART, Split(1, 1, 1))
    assert found.round_seconds == pytest.approx(5)
    assert found.mean_staleness == pytest.approx(4)


def test_staleness_counts_updates() -> None:
    work = replace(ONE, staleness=4, updates=2)
    found = simulate(work, rates(generate=0.1, train=5.0), APART, Split(1, 1, 1))
    assert found.mean_staleness == pytest.approx(4)
    assert found.round_seconds == pytest.approx(5)


def test_processes_that_train_divide_the_passes() -> None:
    work = replace(ONE, pass_tokens=2)
    # 10 tokens are 5 passes, which 4 processes make in 2 turns.
    found = simulate(work, rates(), Machines(gpus=8), Split(4, 1, 1))
    assert found.round_seconds == pytest.approx(GENERATE + TRAIN * 2 / 5)


def test_collectives_hide_behind_passes_until_they_are_longer() -> None:
    machines = Machines(nodes=4, gpus=1, bandwidth=100.0)
    wide = simulate(ONE, rates(weight_bytes=40), machines, Split(2, 1, 1))
    # To the generator's node 0.4 s; each pass moves the other half of the weights three times in 0.6 s.
    assert wide.round_seconds == pytest.approx(GENERATE + 0.4 + TRAIN / 2)
    narrow = simulate(ONE, rates(weight_bytes=400), machines, Split(2, 1, 1))
    assert narrow.round_seconds == pytest.approx(GENERATE + 4 + 6)


def test_weights_spread_from_node_to_node() -> None:
    machines = Machines(nodes=8, gpus=1, bandwidth=10.0)
    # One sender, then two, then four: seven nodes have 20 bytes after three times two seconds.
    found = simulate(replace(ONE, prompts=7), rates(weight_bytes=20), machines, Split(1, 7, 1))
    assert found.round_seconds == pytest.approx(GENERATE + 7 * TRAIN + 3 * 2)


def test_generators_of_one_node_get_the_weights_together() -> None:
    machines = Machines(nodes=2, gpus=4, bandwidth=10.0, gpu_bandwidth=20.0)
    # The fifth GPU on is on the other node, whose first generator receives in 2 s; the others copy from it in 1 s.
    found = simulate(replace(ONE, prompts=7), rates(weight_bytes=20), machines, Split(1, 7, 1))
    assert found.round_seconds == pytest.approx(GENERATE + 7 * TRAIN + 2 + 1)


def test_a_round_without_signal_is_drawn_again() -> None:
    work = Workload(prompts=2, group_size=1, resample_rounds=3)
    found = simulate(work, rates(train=0.0, signal=0.0), APART, Split(1, 2, 1))
    assert found.round_seconds == pytest.approx(4 * GENERATE)
    assert found.samples_per_second == pytest.approx(8 / (4 * GENERATE))


def test_who_trains_and_generates_does_so_by_turns() -> None:
    work = Workload(prompts=4, group_size=1, staleness=4, pass_tokens=LENGTH)
    found = simulate(work, rates(), Machines(gpus=4), Split(4, 0, 1))
    assert found.round_seconds == pytest.approx(GENERATE + TRAIN)
    assert found.idle["trainers"] == pytest.approx(0)
    assert found.most_staleness == 0


def test_a_lost_generator_does_its_share_again() -> None:
    machines = Machines(nodes=3, gpus=1, restart_seconds=7.0)
    work, split = Workload(prompts=2, group_size=1), Split(1, 2, 1)
    whole = TrainingSimulation(work, rates(), machines, split).run(6)
    # The second round begins at 7 and is written until 10; at 9 two seconds of it are lost, and 7 until it is back.
    cut = TrainingSimulation(work, rates(), machines, split, lost_at=9.0, lost_node=2).run(6)
    assert cut.ends[0] == whole.ends[0]
    assert cut.ends[1] - whole.ends[1] == pytest.approx(2 + 7)
    assert cut.ends[-1] - whole.ends[-1] == pytest.approx(2 + 7)
    assert cut.redone == 1
    assert whole.redone == 0


def test_an_asynchronous_run_goes_on_with_the_others() -> None:
    machines = Machines(nodes=9, gpus=1, restart_seconds=100.0)
    work, split = Workload(prompts=8, group_size=1, staleness=4), Split(1, 8, 1)
    own = rates(generate=8.0, train=0.5)
    found = simulate(work, own, machines, split)
    generator = next(loss for loss in losses(work, own, machines, found) if loss.node == "generator")
    # One of eight is away for a little more than 100 seconds, of which the run loses an eighth.
    assert generator.seconds == pytest.approx(100 / 8, abs=8.0)
    assert generator.redone == 1


def test_an_outage_of_very_many_rounds_costs_in_proportion() -> None:
    machines = Machines(nodes=9, gpus=1, restart_seconds=100_000.0)
    work, split = Workload(prompts=8, group_size=1, staleness=4), Split(1, 8, 1)
    own = rates(generate=8.0, train=0.5)
    found = simulate(work, own, machines, split)
    generator = next(loss for loss in losses(work, own, machines, found) if loss.node == "generator")
    assert generator.seconds == pytest.approx(100_000 / 8, rel=0.1)


def test_a_lost_trainer_goes_back_to_its_checkpoint() -> None:
    work = replace(ONE, save_rounds=10.0)
    machines = Machines(nodes=2, gpus=1, restart_seconds=60.0)
    found = simulate(work, rates(), machines, Split(1, 1, 1))
    trainer = next(loss for loss in losses(work, rates(), machines, found) if loss.node == "trainer")
    assert trainer.seconds == pytest.approx(60 + 5 * (GENERATE + TRAIN))
    assert trainer.dollars(replace(machines, price=3.6)) == pytest.approx(trainer.seconds * 2 * 3.6 / 3600)


def test_the_same_seed_is_the_same_run() -> None:
    work = Workload(prompts=4, group_size=4, staleness=2)
    own = replace(rates(), lengths=TAIL)
    ends = [TrainingSimulation(work, own, APART, Split(1, 3, 2), seed).run(10).ends for seed in (0, 0, 1)]
    assert ends[0] == ends[1] != ends[2]
