from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from operant.report.tables import experiment_rows, render_experiments

Make = Callable[..., Path]
NOW = datetime(2025, 1, 3, 2, tzinfo=UTC)


def rows(trial: Path) -> list[Any]:
    return experiment_rows(trial.parents[2], NOW)


def test_one_experiment(make_trial: Make) -> None:
    [row] = rows(make_trial({"final": 480.0}, {"final": 500.0}))
    assert (row.name, row.stamp, row.state) == ("ppo_cartpole", "20250101-000000", "done")
    assert (row.sessions_done, row.sessions, row.frames, row.trials) == (2, 2, 2000, 1)
    assert row.score is not None
    assert (row.score.point, row.score.n, row.score_is_final) == (490.0, 2, True)
    assert row.age == 2 * 86_400 + 2 * 3600


def test_text_newest_first(make_trial: Make) -> None:
    make_trial({"final": 480.0}, {"final": 500.0})
    trial = make_trial({"final": None, "state": "failed"}, stamp="20250102-000000")
    lines = render_experiments(rows(trial)).splitlines()
    # The synthetic runs have no checkpoints, which is said as well.
    assert [line for line in lines if "holds no checkpoint" not in line] == [
        "experiment                    state   sessions  frames  score                            age",
        "ppo_cartpole/20250102-000000  failed       0/2      1k  ~ 450.0 (one seed, no interval)  1 d 02 h",
        "ppo_cartpole/20250101-000000  done         2/2      2k  490.0 [480.0, 500.0]             2 d 02 h",
        "~ score of the last evaluation; training was not over",
    ]


def test_the_best_trial_is_said_to_be_the_best_of_several(make_trial: Make) -> None:
    make_trial({"final": 100.0}, {"final": 100.0}, trial=0)
    trial = make_trial({"final": 200.0}, {"final": 220.0}, trial=1)
    [row] = rows(trial)
    assert (row.trials, row.sessions) == (2, 4)
    assert row.score.point == 210.0
    assert "210.0 [200.0, 220.0], best of 2 trials" in render_experiments([row])


def test_an_experiment_that_has_not_begun(make_trial: Make) -> None:
    [row] = rows(make_trial())
    assert (row.state, row.sessions_done, row.sessions, row.score) == ("new", 0, 2, None)


def test_a_damaged_experiment_does_not_hide_the_others(make_trial: Make) -> None:
    make_trial({}, {})
    trial = make_trial({}, stamp="20250102-000000")
    (trial / "session_0" / "run.json").write_text("{")
    found = rows(trial)
    assert sorted(row.state for row in found) == ["done", "unreadable"]
    assert "damaged" in render_experiments(found)


def test_json(make_trial: Make) -> None:
    [row] = rows(make_trial({}, {}))
    document = json.loads(json.dumps(row.as_dict()))
    assert document["score"]["point"] == 480.0
    assert document["stamp"] == "20250101-000000"


@pytest.mark.parametrize("folder", ["runs", "missing"])
def test_no_runs(tmp_path: Path, folder: str) -> None:
    (tmp_path / "runs").mkdir()
    assert experiment_rows(tmp_path / folder) == []
    assert "operant train" in render_experiments([])


def test_the_dearest_first_by_the_ledger_and_not_by_the_clock(make_trial: Make) -> None:
    """Seconds of CPU and GPU where a price is missing, dollars where every account has one; no account comes last."""

    def account(trial: Path, seconds: int, price: float | None) -> None:
        began, ended = (datetime(2025, 1, 1, 0, 0, second, tzinfo=UTC).isoformat() for second in (0, seconds))
        entry = {"attempt": 1, "machine": "m", "began": began, "ended": ended, "cpu_seconds": seconds}
        priced = {} if price is None else {"price_per_hour": price}
        document = {"format": 1, "attempts": [{**entry, **priced}]}
        (trial / "session_0" / "cost.json").write_text(json.dumps(document))

    def listed() -> tuple[list[str], str]:
        found = experiment_rows(short.parents[2], NOW, order="cost")
        return [row.stamp[-1] for row in found], render_experiments(found)

    short, long, bare = (make_trial({}, stamp=f"20250101-00000{number}") for number in range(3))
    account(short, 10, 360.0)
    account(long, 30, None)
    order, text = listed()
    assert order == ["1", "0", "2"]
    assert [word for word in ("30 s", "10 s", "$") if word in text] == ["30 s", "10 s"]
    account(long, 30, 36.0)
    order, text = listed()
    assert order == ["0", "1", "2"]
    assert [word for word in ("$1.00", "$0.30") if word in text] == ["$1.00", "$0.30"]
    assert "cost" not in render_experiments(rows(bare))
