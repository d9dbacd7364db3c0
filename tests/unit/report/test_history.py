from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from operant.report.episodes import Catalogue
from operant.report.history import histories
from operant.report.stats import episode_interval, quick_interval
from operant.run.episode import Episode
from operant.run.progress import Progress
from tests.unit.report.trajectories import training, write_experiment, write_rows


def episode(frames: int, score: float | None, split: str = "eval", version: int | None = None) -> Episode:
    ended = "error" if score is None else "terminated"
    return Episode("blotto", split, 0, Progress(frames=frames, updates=frames // 64), score, 1, ended, version=version)


def opened(tmp_path: Path, *episodes: Episode) -> Catalogue:
    return Catalogue.open(write_rows(tmp_path / "episodes.jsonl", [each.as_dict() for each in episodes]))


def test_a_point_for_each_moment_with_its_interval_over_episodes(tmp_path: Path) -> None:
    rows = [episode(0, 0.0), episode(0, 0.2), episode(64, 0.6), episode(64, 1.0), episode(64, None)]
    (found,) = histories(opened(tmp_path, *rows).entries)
    assert (found.task, found.split, found.over) == ("blotto", "eval", "episodes")
    assert [(point.x, point.episodes, point.errors) for point in found.points] == [(0.0, 2, 0), (64.0, 2, 1)]
    assert found.points[1].estimate == episode_interval([0.6, 1.0, 0.0]), "an answer without a score counts as 0"


def test_several_seeds_count_once_each(tmp_path: Path) -> None:
    first, second = [episode(0, 0.0)] * 9, [episode(0, 1.0)]
    place = write_experiment(tmp_path, "seeds", "20260101-000000", [first, second])
    (found,) = histories(Catalogue.open(place).entries)
    assert found.over == "seeds"
    assert (found.points[0].estimate.point, found.points[0].estimate.n, found.points[0].episodes) == (0.5, 2, 10)


def test_many_moments_are_put_together(tmp_path: Path) -> None:
    rows = [episode(frames, frames / 1000) for frames in range(1000)]
    (found,) = histories(opened(tmp_path, *rows).entries, most=10)
    assert [point.episodes for point in found.points] == [100] * 10
    assert found.points[0].x == pytest.approx(49.5)
    assert found.points[0].estimate.point == pytest.approx(0.0495)


def test_other_axes_and_moments_that_are_not_known(tmp_path: Path) -> None:
    rows = [episode(64, 0.1, version=3), episode(128, 0.2)]
    catalogue = opened(tmp_path, *rows)
    assert [point.x for point in histories(catalogue.entries, "updates")[0].points] == [1.0, 2.0]
    assert [point.x for point in histories(catalogue.entries, "version")[0].points] == [3.0]
    assert histories([]) == []


def test_only_errors_make_no_point(tmp_path: Path) -> None:
    (found,) = histories(opened(tmp_path, episode(0, None)).entries)
    assert found.points == ()
    assert found.as_dict()["task"] == "blotto"


def test_tasks_and_splits_apart_and_scores_that_rise(tmp_path: Path) -> None:
    found = histories(opened(tmp_path, *training(0)).entries)
    assert [(each.task, each.split) for each in found[:3]] == [
        ("blotto", "eval"), ("blotto", "train"), ("prisoners_dilemma", "eval"),
    ]  # fmt: skip
    assert all(each.points[-1].estimate.point > each.points[0].estimate.point + 0.3 for each in found)


def test_the_quick_interval_of_many_is_that_of_the_bootstrap() -> None:
    scores = np.random.default_rng(3).normal(0.4, 0.2, 1000)
    quick, slow = quick_interval(scores), episode_interval(scores)
    assert quick.point == slow.point
    assert quick_interval(scores[:50]) == episode_interval(scores[:50])
    assert quick_interval([0.0] * 500) == episode_interval([0.0] * 500)
    assert [quick.low, quick.high] == pytest.approx([slow.low, slow.high], abs=1e-3)


def test_an_evaluation_is_no_other_seed_and_is_kept_apart(tmp_path: Path) -> None:
    place = write_experiment(tmp_path, "one", "20260101-000000", [[episode(0, 0.2), episode(0, 0.4)]])
    write_rows(place / "trial_000/session_0/eval.jsonl", [episode(0, 0.9).as_dict()])
    for path in (place, place / "trial_000/session_0"):
        trained, evaluated = histories(Catalogue.open(path).entries)
        assert (trained.split, trained.over, trained.points[0].episodes) == ("eval", "episodes", 2)
        assert (evaluated.split, evaluated.points[0].estimate.point) == ("eval, evaluation", 0.9)
