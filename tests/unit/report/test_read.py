from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from operant.errors import UsageError
from operant.report.read import Evaluation, read_session, read_trial, trials_of


def test_columns_have_nan_where_a_row_has_no_value(make_trial: Callable[..., Path]) -> None:
    session = read_session(make_trial({"returns": (None, 100.0), "evals": {500: 9.0}, "final": None}) / "session_0")
    np.testing.assert_array_equal(session.column("frames"), [500, 500, 1000])
    np.testing.assert_array_equal(session.column("train/return"), [np.nan, np.nan, 100])
    np.testing.assert_array_equal(session.column("eval/score"), [np.nan, 9, np.nan])
    assert np.isnan(session.column("never/heard")).all()
    assert session.metrics()[:5] == ["frames", "updates", "episodes", "tokens", "seconds"]
    assert session.metrics()[-1] == "eval/score"


def test_facts_of_the_session(make_trial: Callable[..., Path]) -> None:
    path = make_trial({"seed": 7, "state": "failed", "error": "it broke", "attempts": 3}) / "session_0"
    session = read_session(path)
    assert (session.name, session.index, session.seed, session.state) == ("ppo_cartpole", 0, 7, "failed")
    assert (session.error, session.attempts, session.frames, session.seconds) == ("it broke", 3, 1000, 3.0)
    assert session.anchors == {"random": 20.0}
    assert session.provenance["git"][0]["sha"] == "1a2b3c4d5e6f"


def test_a_killed_run_is_stopped_and_its_torn_line_is_not_a_row(make_trial: Callable[..., Path]) -> None:
    session = read_session(make_trial({"state": "running", "final": None, "torn": '{"frames": 99'}) / "session_0")
    assert session.state == "stopped"
    assert session.frames == 1000


def test_a_run_without_any_file_but_its_own_reads_as_nothing_known(make_trial: Callable[..., Path]) -> None:
    path = make_trial({"state": "new", "anchors": None}) / "session_0"
    (path / "metrics.jsonl").unlink()
    (path / "episodes.jsonl").unlink()
    session = read_session(path)
    assert (session.rows, session.frames, session.seconds, session.anchors) == ([], 0, 0.0, {})
    assert (session.final(), session.evaluations(), session.episodes()) == (None, [], [])
    assert len(session.curve("train/return").x) == 0


def test_evaluations(make_trial: Callable[..., Path]) -> None:
    session = read_session(make_trial({}) / "session_0")
    assert session.evaluations() == [Evaluation(500, 150.0, episodes=10), Evaluation(1000, 450.0, episodes=10)]
    assert session.final() == Evaluation(1000, 480.0, 475.0, 485.0, 100)


def test_a_score_that_was_not_finite_is_no_score(make_trial: Callable[..., Path]) -> None:
    torn = '{"frames": 1000, "final/score": null}\n'
    assert read_session(make_trial({"final": None, "torn": torn}) / "session_0").final() is None


def test_episodes_by_split(make_trial: Callable[..., Path]) -> None:
    rows = [{"split": split, "score": score} for split, score in (("train", 1), ("eval", 2), ("train", 3))]
    session = read_session(make_trial({"episodes": rows}) / "session_0")
    assert [row["score"] for row in session.episodes("train")] == [1, 3]
    assert session.episodes("final") == []
    assert len(session.episodes()) == 3


def test_curves_over_every_axis(make_trial: Callable[..., Path]) -> None:
    session = read_session(make_trial({}) / "session_0")
    np.testing.assert_array_equal(session.curve("train/return", "seconds").x, [0.5, 1, 1.5, 2])
    np.testing.assert_array_equal(session.curve("train/return", "updates").x, [0, 1, 2, 3])
    np.testing.assert_array_equal(session.curve("train/return", "episodes").y, [20, 100, 200, 400])


def test_a_trial_is_found_from_its_experiment_itself_or_one_session(make_trial: Callable[..., Path]) -> None:
    trial = make_trial({"seed": 3}, {"seed": 4, "anchors": {"random": 30.0}})
    for path in (trial, trial.parent):
        assert [session.seed for session in read_trial(path).sessions] == [3, 4]
    assert read_trial(trial).anchors == {"random": 25.0}
    assert [session.seed for session in read_trial(trial / "session_1").sessions] == [4]
    assert trials_of(trial.parent) == [trial]
    assert trials_of(trial) == [trial]


def test_an_experiment_of_several_trials_asks_for_one(make_trial: Callable[..., Path]) -> None:
    make_trial({}, trial=0)
    trial = make_trial({}, trial=1)
    with pytest.raises(UsageError, match="2 trials: trial_000 to trial_001") as caught:
        read_trial(trial.parent)
    assert caught.value.remedy is not None
    assert "trial_000" in caught.value.remedy


@pytest.mark.parametrize("make_experiment", [True, False])
def test_nothing_there(tmp_path: Path, make_experiment: bool, spec: dict[str, Any]) -> None:
    if make_experiment:
        (tmp_path / "experiment.json").write_text("{}")
    with pytest.raises(UsageError, match="no trial yet" if make_experiment else "no session"):
        read_trial(tmp_path)
