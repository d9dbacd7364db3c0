"""How samples are put into passes: each once, within the limit, and prompts shared where that pays."""

from __future__ import annotations

import pytest

from operant.engines.language.policy.batching import Batch, Sample, micro_batches

LONG, SHORT = (7,) * 30, (8,) * 2
SAMPLES = [Sample(LONG, (3,) * n) for n in (4, 6, 2)] + [Sample(SHORT, (4,) * n) for n in (20, 25)]


def lines(batches: list[Batch]) -> list[Batch]:
    return [batch for batch in batches if batch.branches is not None]


@pytest.mark.parametrize("share_from", [None, 0.0, 0.5])
@pytest.mark.parametrize("most", [1, 40, 64, 1000])
def test_every_token_is_learnt_once_from_the_place_before_it(share_from: float | None, most: int) -> None:
    batches = micro_batches(SAMPLES, most, share_from=share_from)
    assert sorted(number for batch in batches for number in batch.samples) == list(range(len(SAMPLES)))
    for batch in batches:
        assert batch.padded_tokens <= most or len(batch.samples) == 1
        read, places = batch.tokens.flatten(), batch.positions.flatten()
        for number in batch.samples:
            sample = SAMPLES[number]
            mine = batch.owner == number
            assert batch.targets[mine].tolist() == list(sample.completion)
            at = batch.at[mine]
            assert read[at].tolist() == [sample.prompt[-1], *sample.completion[:-1]]
            first = len(sample.prompt) - 1
            assert places[at].tolist() == list(range(first, first + len(sample.completion)))


def test_a_line_has_no_padding() -> None:
    (line,) = micro_batches(SAMPLES, 1000, share_from=0.0)
    assert line.padded_tokens == 30 + 3 + 5 + 1 + 2 + 19 + 24


def test_prompts_are_shared_where_that_saves_enough() -> None:
    assert lines(micro_batches(SAMPLES, 1000)) == []
    assert lines(micro_batches([Sample(LONG, (3,)), Sample(LONG, (4,))], 1000)) == []
    (line,) = lines(micro_batches(SAMPLES, 1000, share_from=0.5))
    assert set(line.samples) == {0, 1, 2}


def test_a_family_too_large_for_a_pass_is_divided() -> None:
    batches = micro_batches(SAMPLES[:3], 37, share_from=0.0)
    assert sorted(len(batch.samples) for batch in batches) == [1, 2]


def test_only_what_the_policy_wrote_is_learnt() -> None:
    (batch,) = micro_batches([Sample((5, 6), (7, 8, 9), learnt=(0, 2)), Sample((5, 6), (3,))], 100, share_from=0.0)
    assert batch.targets.tolist() == [7, 9, 3]
    assert batch.tokens.flatten()[batch.at].tolist() == [6, 8, 6]
