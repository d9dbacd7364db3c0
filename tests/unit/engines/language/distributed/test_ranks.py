"""How micro-batches are dealt out: each once, about equally, and as many passes for everyone."""

from __future__ import annotations

import pytest

from operant.engines.language.distributed.ranks import Ranks
from operant.engines.language.policy.batching import Batch, Sample, micro_batches

SAMPLES = [Sample((2,) * (3 + k % 5), (3,) * (1 + k % 7)) for k in range(23)]


def hands(size: int, batches: list[Batch]) -> list[list[tuple[Batch, float]]]:
    found = []
    for rank in range(size):
        ranks = Ranks()
        ranks.rank, ranks.size = rank, size
        found.append(ranks.deal(batches))
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 8, 40])
def test_every_batch_counts_once_and_everyone_makes_as_many_passes(size: int) -> None:
    batches = micro_batches(SAMPLES, 24)
    dealt = hands(size, batches)
    assert len({len(hand) for hand in dealt}) == 1
    counted = [batch.samples for hand in dealt for batch, weight in hand if weight]
    assert sorted(counted) == sorted(batch.samples for batch in batches)


def test_work_is_shared_by_tokens() -> None:
    batches = micro_batches([Sample((2,) * (k + 1), (3, 3)) for k in range(32)], 4)
    work = [sum(batch.padded_tokens for batch, _ in hand) for hand in hands(2, batches)]
    assert max(work) <= 1.05 * min(work)


def test_alone_nothing_changes() -> None:
    batches = micro_batches(SAMPLES, 24)
    assert [batch for batch, weight in Ranks().deal(batches) if weight == 1.0] == batches
    assert Ranks().pass_tokens(SAMPLES, 24) == 24
