"""What a problem tells of its episodes, in the summary of a trial."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from operant.report.episode_metrics import final_parts, line
from operant.report.read import read_trial
from operant.report.summary import render, summarise

Make = Callable[..., Path]


def episode(stage: float, won: float, split: str = "final") -> dict[str, Any]:
    return {"split": split, "score": 1.0, "parts": {"stage": stage, "won": won}}


def test_parts_of_one_seed_have_intervals_over_its_final_episodes(make_trial: Make) -> None:
    played = [episode(3.0, 0.0), episode(5.0, 0.0), episode(4.0, 1.0), episode(8.0, 1.0, "train")]
    trial = make_trial({"episodes": played, "parts": {"stage": 4.0, "won": 1 / 3}})
    parts = final_parts(read_trial(trial).sessions)
    assert (parts["stage"].point, parts["stage"].n) == (4.0, 3)
    assert parts["won"].low is not None
    assert 0.05 < parts["won"].low < 1 / 3


def test_parts_of_several_seeds_have_intervals_over_seeds(make_trial: Make) -> None:
    trial = make_trial({"parts": {"stage": 4.0}}, {"parts": {"stage": 5.0}})
    parts = final_parts(read_trial(trial).sessions)
    assert line(parts) == "stage 4.500 [4.000, 5.000]"
    assert "parts stage 4.500 [4.000, 5.000]" in render(summarise(trial))


def test_most_problems_tell_nothing(make_trial: Make) -> None:
    trial = make_trial({}, {})
    assert final_parts(read_trial(trial).sessions) == {}
    assert "parts" not in render(summarise(trial))
