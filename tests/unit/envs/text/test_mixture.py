"""The course of training problems: a pure function of the seed and the position."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from operant.envs.text.mixture import BLOCK, Mode, Part, ProblemSampler, shares
from operant.envs.text.task import Problem, Task
from operant.envs.text.tasks import make_task
from operant.errors import UsageError


def task(name: str, size: int = 30) -> Task:
    return make_task("copy", {"size": size, "eval_size": 20}, label=name)


def ids(problems: list[Problem]) -> list[str]:
    return [problem.id for problem in problems]


def two(seed: int = 0) -> ProblemSampler:
    return ProblemSampler([Part(task("a"), weight=3), Part(task("b", size=7))], seed=seed)


def test_a_course_can_be_taken_up_anywhere() -> None:
    whole = ids(two().take(0, 2_500))
    pieces = [one for start in range(0, 2_500, 50) for one in ids(two().take(start, 50))]
    assert pieces == whole
    assert ids(two(seed=1).take(0, 2_500)) != whole


def test_weights_are_kept_exactly_in_every_block() -> None:
    problems = two().take(0, 3 * BLOCK)
    for block in range(3):
        counts = Counter(problem.task for problem in problems[block * BLOCK : (block + 1) * BLOCK])
        assert counts == {"a": 750, "b": 250}


def moving(seed: int = 0) -> ProblemSampler:
    """`a` leaves, `b` comes, `c` stays as it is."""
    parts = [Part(task("a"), 1, weight_end=0), Part(task("b", 900), 0, weight_end=2), Part(task("c"), 1)]
    return ProblemSampler(parts, seed=seed, curriculum=4 * BLOCK)


def test_a_curriculum_moves_the_weights_and_stays_at_its_end() -> None:
    problems = moving().take(0, 7 * BLOCK)
    counts = [Counter(one.task for one in problems[at : at + BLOCK]) for at in range(0, len(problems), BLOCK)]
    assert counts[0] == {"a": 500, "c": 500}
    assert counts[2] == {"a": 200, "b": 400, "c": 400}  # weights 0.5, 1 and 1
    assert counts[4] == counts[5] == counts[6] == {"b": 667, "c": 333}
    assert Counter(one.task for one in moving().held_out(30)) == {"b": 20, "c": 10}


def test_a_curriculum_can_be_taken_up_anywhere_and_repeats_nothing_early() -> None:
    whole = ids(moving().take(0, 7 * BLOCK))
    assert [one for at in range(0, 7 * BLOCK, 70) for one in ids(moving().take(at, 70))] == whole
    mine = [one for one in whole if one.startswith("b/")]
    assert all(len(set(mine[at : at + 900])) == 900 for at in range(0, len(mine) - 900, 900))


@pytest.mark.parametrize(
    ("parts", "mode", "curriculum", "named"),
    [
        ([Part(task("a"), 1, weight_end=2)], "weighted", None, "no curriculum"),
        ([Part(task("a"), 1)], "weighted", 1000, "none to move"),
        ([Part(task("a"), 1, weight_end=2)], "sequential", 1000, "none to move"),
        ([Part(task("a"), 1, weight_end=0)], "weighted", 1000, "weight 0 at one end"),
        ([Part(task("a"), 0), Part(task("b"))], "weighted", None, "above zero"),
    ],
)
def test_a_curriculum_that_cannot_be_is_refused(
    parts: list[Part], mode: Mode, curriculum: int | None, named: str
) -> None:
    with pytest.raises(UsageError, match=named):
        ProblemSampler(parts, mode, curriculum=curriculum)


def test_none_comes_again_before_all_have_come() -> None:
    mine = [one for one in ids(two().take(0, BLOCK)) if one.startswith("a/")]
    for start in range(0, 750, 30):
        assert len(set(mine[start : start + 30])) == 30
    assert mine[:30] != mine[30:60]


def test_phases_follow_each_other_and_begin_again() -> None:
    course = ProblemSampler([Part(task("a"), count=5), Part(task("b"), count=3)], mode="sequential")
    assert [problem.task for problem in course.take(0, 16)] == [*"aaaaabbb", *"aaaaabbb"]
    first, second = ids(course.take(0, 5)), ids(course.take(8, 5))
    assert set(first).isdisjoint(second)  # the next round goes on where the last one stopped
    assert course.length == 60


def test_without_shuffling_the_order_is_the_tasks_own() -> None:
    course = ProblemSampler([Part(task("a"))], shuffle=False)
    assert ids(course.take(28, 4)) == [f"a/train/{index}" for index in (28, 29, 0, 1)]


def test_an_order_file_is_followed_pass_after_pass(tmp_path: Path) -> None:
    order = tmp_path / "order.txt"
    order.write_text("a/train/7\n\na/train/2\na/train/11\n")
    course = ProblemSampler([Part(task("a"), order=order)], seed=3)
    assert ids(course.take(0, 7)) == [f"a/train/{index}" for index in (7, 2, 11, 7, 2, 11, 7)]
    assert course.length == 3


def test_an_unknown_id_is_an_error_that_names_it(tmp_path: Path) -> None:
    order = tmp_path / "order.txt"
    order.write_text("a/train/7\na/train/700\nb/train/1\n")
    with pytest.raises(UsageError) as error:
        ProblemSampler([Part(task("a"), order=order)])
    assert "2 of 3 ids are no problems of this task: a/train/700, b/train/1" in str(error.value)
    assert "ids look like a/train/" in str(error.value)
    order.write_text("\n")
    with pytest.raises(UsageError, match="names no problem"):
        ProblemSampler([Part(task("a"), order=order)])
    with pytest.raises(UsageError, match="cannot be read"):
        ProblemSampler([Part(task("a"), order=tmp_path / "nowhere")])


def test_held_out_problems_are_in_proportion_and_fixed() -> None:
    held = two().held_out(16, seed=1)
    assert Counter(problem.task for problem in held) == {"a": 12, "b": 4}
    assert all("/eval/" in problem.id for problem in held)
    assert len(set(ids(held))) == 16
    assert ids(two(seed=9).held_out(16, seed=1)) == ids(held)
    assert len(two().held_out(1_000)) == 40  # all there are


def test_shares_add_up() -> None:
    assert shares([1, 1, 1], 100) == [34, 33, 33]
    assert shares([1000, 0.001], 1000, least=1) == [999, 1]
    assert sum(shares([0.2, 0.3, 0.5], 7)) == 7


@pytest.mark.parametrize(
    ("parts", "mode", "cause"),
    [
        ([], "weighted", "at least one task"),
        ([("a", 1.0), ("a", 1.0)], "weighted", "two tasks of the mixture are called a"),
        ([("a", 0.0)], "weighted", "must be above zero"),
        ([("a", 1.0)], "random", "no mixture mode 'random'"),
    ],
)
def test_mistakes(parts: list[tuple[str, float]], mode: str, cause: str) -> None:
    with pytest.raises(UsageError, match=cause):
        ProblemSampler([Part(task(name), weight=weight) for name, weight in parts], mode=mode)  # type: ignore[arg-type]
