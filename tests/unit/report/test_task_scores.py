"""What episodes of an examination add up to."""

from __future__ import annotations

import pytest

from operant.report.task_scores import score_table, task_score
from operant.run.episode import Episode
from operant.run.progress import Progress


def answers(item: str, *scores: float | None) -> list[Episode]:
    return [
        Episode(
            "t",
            "eval",
            0,
            Progress(),
            score,
            10,
            "error" if score is None else "terminated",
            parts={"unparsed": float(score == 0.0)},
            item=item,
        )
        for score in scores
    ]


def test_samples_of_an_item_are_one_value() -> None:
    found = task_score("t", answers("a", 1, 1, 0, 0) + answers("b", 0, 0, 0, 0) + answers("c", 1, 1, 1, 1), 2.0)
    assert found.score is not None
    assert (found.items, found.samples, found.score.point, found.score.n) == (3, 4, 0.5, 3)
    assert {k: estimate.point for k, estimate in found.passes.items()} == pytest.approx(
        {1: 0.5, 2: (5 / 6 + 0 + 1) / 3, 3: 2 / 3, 4: 2 / 3}
    )
    assert (found.unparsed, found.tokens) == (6, 120)


def test_answers_without_a_score_are_counted_and_never_dropped_from_a_mean() -> None:
    found = task_score("t", answers("a", 1, None) + answers("b", None, None) + answers("c", 0, 1), 1.0)
    assert found.score is not None
    assert (found.items, found.errors, found.score.n, found.score.point) == (3, 3, 3, pytest.approx(1 / 3))
    assert (found.passes[2].n, found.passes[2].point) == (3, pytest.approx(2 / 3))
    assert score_table([found])[-1] == "3 answers without a score: they count as 0"


def test_a_part_of_a_point_is_no_pass() -> None:
    found = task_score("t", answers("a", 0.9, 0.9), 1.0)
    assert found.passes[1].point == 0.0
    assert found.score is not None
    assert found.score.point == pytest.approx(0.9)


def test_a_rate_of_zero_has_an_interval() -> None:
    found = task_score("t", [one for item in range(20) for one in answers(str(item), 0.0)], 1.0)
    assert found.score is not None
    assert found.passes == {}
    assert found.score.high == pytest.approx(0.161, abs=1e-3)


def test_a_task_without_a_single_verdict_has_no_score() -> None:
    found = task_score("t", answers("a", None), 1.0)
    assert found.score is None
    assert score_table([found]) == [
        "task  items  score  unparsed  truncated  errors  tokens/s",
        "t         1  -             0          0       1        10",
    ]


def test_the_table_shows_powers_of_two_and_the_last_k() -> None:
    (head, _) = score_table([task_score("t", answers("a", *[1.0] * 6), 1.0)])
    assert head.split() == [
        "task",
        "items",
        "score",
        "pass@1",
        "pass@2",
        "pass@4",
        "pass@6",
        "unparsed",
        "truncated",
        "errors",
        "tokens/s",
    ]
