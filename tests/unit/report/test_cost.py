"""The ledger: attempts add up, clocks that ran side by side do not, shares add up to the whole."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from operant.report.cost import Cost, Ledger, cost_of, energy, money, search_cost


def attempt(began: float, ended: float, number: int = 1, machine: str = "here", **facts):
    times = {
        name: datetime.fromtimestamp(1e9 + at, UTC).isoformat() for name, at in (("began", began), ("ended", ended))
    }
    basis = {"cpu_seconds": ended - began, "gpus": [], "frames": [0, 100], "tokens": [0, 0], "seconds": [0.0, 0.0]}
    return {"attempt": number, "machine": machine, **times, **basis, **facts}


def write(trial, *sessions):
    for number, attempts in enumerate(sessions):
        (trial / f"session_{number}" / "cost.json").write_text(json.dumps({"format": 1, "attempts": attempts}))
    return trial


def paid(path: Path, price: float | None = None) -> Cost:
    """The cost of what has an account."""
    found = cost_of(path, price)
    assert found is not None
    return found


def test_resumed_attempts_add_up_with_what_was_done_twice(make_trial):
    first = attempt(0, 100, frames=[0, 500], tokens=[0, 50], price_per_hour=36.0)
    again = attempt(500, 530, 2, frames=[400, 900], tokens=[40, 90], price_per_hour=36.0)
    cost = paid(write(make_trial({}), [first, again]))
    assert (cost.wall_seconds, cost.cpu_seconds, cost.frames, cost.tokens) == (130, 130, 1000, 100)
    assert cost.dollars == pytest.approx(1.30)
    assert cost.attempts == 2
    assert cost.text() == "2 min 10 s wall, 2 min 10 s CPU, 100 tokens, $1.30, 2 attempts"


def test_sessions_side_by_side_have_one_clock(make_trial):
    trial = write(make_trial({}, {}), [attempt(0, 100, price_per_hour=36.0)], [attempt(50, 110, price_per_hour=36.0)])
    whole, parts = paid(trial), [paid(trial / f"session_{k}") for k in (0, 1)]
    assert (whole.wall_seconds, whole.cpu_seconds) == (110, 160)
    assert whole.dollars == pytest.approx(1.10)
    # From 50 to 100 each has half of the machine.
    assert [part.machine_seconds for part in parts] == pytest.approx([75, 35])
    assert sum(part.dollars or 0.0 for part in parts) == pytest.approx(whole.dollars)


def test_two_machines_are_paid_both(make_trial):
    cost = paid(
        write(make_trial({}, {}), [attempt(0, 60)], [attempt(0, 60, machine="there")]),
    )
    assert (cost.wall_seconds, cost.machine_seconds) == (60, 120)


def test_a_gpu_that_sessions_share_is_counted_once(make_trial):
    trial = write(make_trial({}, {}, {}), *([attempt(0, 60, gpus=gpus)] for gpus in (["a"], ["a"], ["b"])))
    assert paid(trial).gpu_seconds == pytest.approx(120)
    assert paid(trial / "session_0").gpu_seconds == pytest.approx(30)


def test_energy_is_shared_like_what_used_it(make_trial):
    # Both sessions saw the same processor use 100 J, and each its own GPU use 50 J.
    trial = write(
        make_trial({}, {}), *([attempt(0, 10, gpus=[gpu], cpu_joules=100.0, gpu_joules=50.0)] for gpu in ("a", "b"))
    )
    assert paid(trial).joules == pytest.approx(200.0)


def test_what_is_not_known_is_not_zero(make_trial):
    bare = attempt(0, 60)
    del bare["gpus"]
    cost = paid(write(make_trial({}), [bare]))
    assert (cost.gpu_seconds, cost.joules, cost.dollars) == (None, None, None)
    assert cost.text() == "1 min 00 s wall, 1 min 00 s CPU"
    assert cost_of(make_trial({}, stamp="20250102-000000")) is None


def test_sessions_without_an_account_are_counted(make_trial):
    trial = make_trial({}, {})
    (trial / "session_0" / "cost.json").write_text(json.dumps({"attempts": [attempt(0, 1), {"attempt": 2}]}))
    (trial / "session_1" / "cost.json").write_text("torn {")
    cost = paid(trial)
    assert (cost.attempts, cost.untold) == (1, 1)
    assert "without 1 session that kept no account" in cost.text()


def test_a_price_given_later_is_for_those_without_one(make_trial):
    trial = write(make_trial({}, {}), [attempt(0, 3600, price_per_hour=2.0)], [attempt(3600, 7200)])
    assert paid(trial).dollars is None
    assert paid(trial, price=5.0).dollars == pytest.approx(7.0)


def test_dollars_at_a_row_hold_the_work_that_was_lost(make_trial):
    first = attempt(0, 100, price_per_hour=3600.0)
    again = attempt(200, 250, 2, seconds=[60.0, 0.0], price_per_hour=3600.0)
    ledger = Ledger.of(write(make_trial({}), [first, again]))
    session = ledger.sessions[0]
    # A row at 70 s of training was written 10 s into the second attempt, when the first had cost its whole 100 s.
    assert ledger.dollars_at(session, np.array([30.0, 59.0, 70.0])) == pytest.approx([30.0, 59.0, 110.0])


def test_a_search_costs_all_of_its_trials(make_trial):
    best = write(make_trial({}, trial=0), [attempt(0, 10)])
    write(make_trial({}, trial=1), [attempt(10, 15), attempt(20, 25, 2)])
    found = search_cost(best)
    assert found is not None
    count, cost = found
    assert (count, cost.wall_seconds) == (2, 20)
    assert paid(best).wall_seconds == 10


def test_many_attempts_share_a_machine_to_the_second(make_trial):
    rng = np.random.default_rng(0)
    times = np.sort(rng.uniform(0, 1000, size=(40, 2)), axis=1).round(3)
    trial = write(make_trial(*({} for _ in times)), *([attempt(*pair)] for pair in times))
    seconds = np.arange(0, 1000, 0.05) + 0.025
    present = (seconds > times[:, :1]) & (seconds < times[:, 1:])
    shares = (present / np.maximum(present.sum(axis=0), 1)).sum(axis=1) * 0.05
    found = [paid(trial / f"session_{k}").machine_seconds for k in range(len(times))]
    assert found == pytest.approx(shares, abs=0.2)
    assert paid(trial).wall_seconds == pytest.approx(present.any(axis=0).sum() * 0.05, abs=0.2)


def test_numbers_as_people_read_them():
    assert [money(each) for each in (0.0, 0.0031, 0.1, 12.4, 1234.5)] == [
        "$0.00",
        "$0.0031",
        "$0.10",
        "$12.40",
        "$1,234.50",
    ]
    assert [energy(each) for each in (850.0, 12_500.0, 3.1e6)] == ["850 J", "12.5 kJ", "3.1 MJ"]
