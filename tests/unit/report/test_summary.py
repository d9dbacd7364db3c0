from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from operant.report.summary import overall_state, render, summarise

Make = Callable[..., Path]


def test_the_score_is_that_of_the_final_evaluation_with_an_interval(make_trial: Make) -> None:
    summary = summarise(make_trial({"final": 480.0}, {"final": 500.0, "seed": 1}), resume="exact")
    assert summary.score is not None
    assert (summary.score.point, summary.score.low, summary.score.high, summary.score.n) == (490.0, 480.0, 500.0, 2)
    assert (summary.score_from, summary.episodes, summary.notes) == ("final evaluation", 100, ())
    assert (summary.env, summary.algorithm, summary.state) == ("CartPole-v1", "ppo", "done")
    assert (summary.frames, summary.seconds, summary.commit, summary.dirty) == (1000, 3.0, "1a2b3c4d5e6f", False)
    assert summary.metrics.strength == 160.0


def test_the_text(make_trial: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = make_trial({"final": 480.0}, {"final": 500.0, "seed": 1, "attempts": 2})
    monkeypatch.chdir(trial.parents[3])
    assert render(summarise(trial, resume="exact"), metrics=True).splitlines()[:-1] == [
        "ppo_cartpole  ppo on CartPole-v1  done  runs/ppo_cartpole/20250101-000000/trial_000",
        "score 490.0 [480.0, 500.0] mean greedy return over 2 seeds, 100 episodes each",
        "random policy 20.00",
        "",
        "session  seed  state  frames   time  score   over episodes  best eval  last return",
        "      0     0  done    1,000  3.0 s  480.0  [475.0, 485.0]      450.0        400.0",
        "      1     1  done    1,000  3.0 s  500.0  [495.0, 505.0]      450.0        400.0",
        "",
        "1,000 frames per seed in 3.0 s, exact resume, commit 1a2b3c4 (clean)",
        "trial_metrics: frame:1000 | total_reward_ma:180 | strength:160 | max_strength:380 | final_strength:380 | "
        "sample_efficiency:93.6 | training_efficiency:161.818 | stability:1 | consistency:1",
    ]


def test_one_seed_is_said_to_have_no_interval(make_trial: Make, spec: dict[str, Any]) -> None:
    spec["meta"]["max_session"] = 1
    text = render(summarise(make_trial({}, spec=spec)), metrics=True)
    assert "score 480.0 (one seed, no interval) mean greedy return over 1 seed, 100 episodes each" in text
    assert "consistency:n/a" in text


def test_without_a_final_evaluation_the_last_one_counts_and_it_is_said(make_trial: Make) -> None:
    summary = summarise(make_trial({"final": None, "state": "stopped"}, {"final": None, "evals": {500: 50.0}}))
    assert summary.score is not None
    assert (summary.score.point, summary.score_from, summary.episodes) == (250.0, "last evaluation", 10)
    assert "at 500 to 1,000 frames" in summary.notes[0]
    assert f"note: {summary.notes[0]}" in render(summary)


def test_a_seed_that_failed_is_left_out_of_the_score_and_named(make_trial: Make) -> None:
    failed = {"final": None, "state": "failed", "error": "disk full\n  try: operant resume x"}
    summary = summarise(make_trial({}, failed))
    assert summary.score is not None
    assert (summary.score.n, summary.state) == (1, "failed")
    assert summary.notes == ("left out of the score, not evaluated: session 1 (failed)",)
    assert "session 1 failed: disk full\n  try: operant resume x\n" in render(summary)


def test_nothing_evaluated_yet(make_trial: Make) -> None:
    empty = {"returns": (), "evals": {}, "final": None, "state": "new", "anchors": None}
    summary = summarise(make_trial(empty))
    assert (summary.score, summary.score_from) == (None, None)
    text = render(summary, metrics=True)
    assert "score: none yet" in text
    assert "note: 1 of 2 sessions exist so far" in text
    assert "frame:n/a" in text


def test_uncommitted_changes_are_said(make_trial: Make) -> None:
    trial = make_trial({}, {})
    git = [{"of": "working directory", "sha": "abc", "dirty": False}, {"of": "operant", "sha": "def", "dirty": True}]
    (trial / "session_0" / "provenance" / "attempt_001.json").write_text(json.dumps({"git": git}))
    assert render(summarise(trial)).endswith("commit abc (with uncommitted changes)")
    (trial / "session_0" / "provenance" / "attempt_001.json").write_text(json.dumps({"git": []}))
    assert render(summarise(trial)).endswith("in 3.0 s")


def test_json(make_trial: Make) -> None:
    document = json.loads(json.dumps(summarise(make_trial({}, {"seed": 1}), resume="warm").as_dict()))
    assert document["score"] == {"point": 480.0, "low": 480.0, "high": 480.0, "n": 2}
    assert [session["seed"] for session in document["sessions"]] == [0, 1]
    assert document["metrics"]["strength"] == 160.0
    assert (document["resume"], document["notes"]) == ("warm", [])


@pytest.mark.parametrize(
    ("states", "state"),
    [(["done", "done"], "done"), (["done", "new"], "new"), (["failed", "running"], "running"), ([], "new"),
     (["stopped", "failed", "done"], "failed")],
)  # fmt: skip
def test_one_word_for_several_states(states: list[str], state: str) -> None:
    assert overall_state(states) == state
