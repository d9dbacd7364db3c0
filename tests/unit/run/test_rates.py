"""Rates from calls of a generator, where the true ones are known."""

from __future__ import annotations

import pytest

from operant.run.rates import Call, Rates, decoding_steps, fit_decoding


def test_steps_are_those_of_the_longest_while_there_are_slots() -> None:
    assert decoding_steps([3, 9, 4], slots=3) == 9


def test_a_completion_begins_when_a_slot_is_free() -> None:
    # Two slots: 3 and 9 begin; 4 follows at 3 and ends at 7; 5 follows at 7 and ends at 12.
    assert decoding_steps([3, 9, 4, 5], slots=2) == 12
    assert decoding_steps([2, 2, 2], slots=1) == 6


def test_both_parts_of_the_time_are_found() -> None:
    by_token, by_step, length = 0.002, 0.05, 20
    calls = [Call(n, n * length, n * length * by_token + length * by_step) for n in (4, 16, 64)]
    found = fit_decoding(calls, [length], slots=64)
    assert found[:2] == pytest.approx((by_token, by_step))
    assert found[2] == []


def test_calls_of_one_size_tell_one_number_and_say_so() -> None:
    by_token, by_step, (remark,) = fit_decoding([Call(8, 100, 2.0), Call(8, 110, 2.2)], [12, 13], slots=8)
    assert (by_token, by_step) == pytest.approx((0.02, 0.0))
    assert "8 completions" in remark


def test_no_rate_is_negative() -> None:
    # Larger calls that take no longer: all of it is steps.
    by_token, by_step, _ = fit_decoding([Call(1, 10, 1.0), Call(8, 80, 0.9)], [10], slots=8)
    assert by_token == 0
    assert by_step == pytest.approx(0.095)


def test_rates_must_be_durations() -> None:
    with pytest.raises(ValueError, match="token_seconds"):
        Rates(-1.0, 0.0, 0.0, 0.0, (1,), 0)
    with pytest.raises(ValueError, match="lengths"):
        Rates(1.0, 0.0, 0.0, 0.0, (), 0)
