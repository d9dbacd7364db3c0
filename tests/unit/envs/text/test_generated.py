"""Procedural tasks: the same problem for the same index, splits apart, and answers judged rightly."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from operant.envs.text.countdown import Countdown, evaluate
from operant.envs.text.tasks import make_task
from operant.errors import UsageError

NAMES = ("arithmetic", "countdown", "largest", "count_letters", "sort", "copy")


@pytest.mark.parametrize("style", ["words", "bare"])
@pytest.mark.parametrize("name", NAMES)
class TestEveryTask:
    def test_gold_is_right_and_wrong_is_not(self, name: str, style: str) -> None:
        task, rng = make_task(name, {"style": style, "size": 300}), Random(0)
        problems = task.problems("train")
        for problem, other in pairwise(problems):
            gold = task.gold(problem)
            assert gold is not None
            assert task.verify(problem, gold).score == 1.0
            wrong = task.wrong(problem, other, rng)
            assert wrong is None or task.verify(problem, wrong).score == 0.0

    def test_an_index_has_one_problem(self, name: str, style: str) -> None:
        problems = make_task(name, {"style": style}).problems("train")
        again = make_task(name, {"style": style, "size": 50}).problems("train")
        assert [problems[i] for i in (3, 49, 7)] == [again[i] for i in (3, 49, 7)]
        assert problems[-1].id.endswith(f"/train/{len(problems) - 1}")
        with pytest.raises(IndexError):
            again[50]

    def test_no_question_is_in_both_splits(self, name: str, style: str) -> None:
        asked = {
            problem.prompt
            for seed in (0, 1)
            for problem in make_task(name, {"style": style, "seed": seed, "size": 2_000}).problems("train")
        }
        held_out = {problem.prompt for problem in make_task(name, {"style": style, "seed": 5}).problems("eval")}
        assert not asked & held_out

    def test_nonsense_is_never_right(self, name: str, style: str) -> None:
        task = make_task(name, {"style": style})
        for problem in task.problems("eval")[:20]:
            for nonsense in ("", "  \n", "９９", "\0", "-" * 5_000, "(" * 5_000, "9" * 500_000, "1, " * 50_000):  # noqa: RUF001
                assert task.verify(problem, nonsense).score != 1.0 or nonsense.startswith("1,")

    def test_the_answer_has_room(self, name: str, style: str) -> None:
        task = make_task(name, {"style": style})
        assert all(len(task.gold(problem) or "") < problem.max_tokens for problem in task.problems("eval")[:100])


def verdict(name: str, completion: str, **arguments: Any) -> str:
    task = make_task(name, arguments)
    problem = task.problems("eval")[0]
    return task.verify(problem, completion.replace("GOLD", str(task.gold(problem)))).outcome


@pytest.mark.parametrize(
    ("completion", "outcome"),
    [
        ("The sum is GOLD.", "right"),
        ("70 + 75 = GOLD", "right"),
        ("GOLD.0", "right"),
        ("GOLD, or maybe 3", "wrong"),
        ("-GOLD", "wrong"),
        ("I cannot say", "unparsed"),
    ],
)
def test_the_last_number_counts(completion: str, outcome: str) -> None:
    assert verdict("arithmetic", completion) == outcome


@pytest.mark.parametrize(
    ("completion", "outcome"), [("GOLD", "right"), (" GOLD and on", "right"), ("GOLD1", "wrong"), ("=GOLD", "unparsed")]
)
def test_a_bare_answer_comes_at_once(completion: str, outcome: str) -> None:
    assert verdict("arithmetic", completion, style="bare") == outcome


def test_a_copy_earns_its_share() -> None:
    task = make_task("copy", {"style": "bare"})
    problem = task.problems("eval")[0]
    half = task.verify(problem, problem.answer[:2] + "!!!")
    assert (half.score, half.outcome) == (0.4, "partial")


def test_numbers_swapped_in_a_sum_stay_in_their_split() -> None:
    task = make_task("arithmetic", {"digits": 1, "size": 3_000, "style": "bare"})
    pairs = {split: {frozenset(p.prompt[:-1].split("+")) for p in task.problems(split)} for split in ("train", "eval")}
    assert pairs["train"].isdisjoint(pairs["eval"])


class TestCountdown:
    task = Countdown()

    def said(self, completion: str, numbers: list[int], target: int) -> str:
        problem = self.task.problems("eval")[0]
        answer = {"numbers": numbers, "target": target, "way": ""}
        return self.task.verify(type(problem)(**{**vars(problem), "answer": answer}), completion).outcome

    @pytest.mark.parametrize(
        ("completion", "outcome"),
        [
            ("Let me think.\n3*4+5", "right"),
            ("17 = 3 * 4 + 5", "right"),
            ("Answer: (3*4)+5 = 17", "right"),
            ("3 × 4 + 5", "right"),  # noqa: RUF001
            ("3*4+5+0", "wrong"),
            ("17", "wrong"),
            ("3*4+4", "wrong"),
            ("3/(4-4)", "wrong"),
            ("3**4", "unparsed"),
            ("__import__('os')", "unparsed"),
            ("9" * 100_000, "unparsed"),
        ],
    )
    def test_verdicts(self, completion: str, outcome: str) -> None:
        assert self.said(completion, [3, 4, 5], 17) == outcome

    def test_nothing_but_arithmetic_is_evaluated(self) -> None:
        for text in ("abs(3)", "2**9", "1 if 1 else 2", "-3", "True", "'a'*9", "0x10.real", "3//2"):
            with pytest.raises((ValueError, SyntaxError)):
                evaluate(text)


@pytest.mark.parametrize(
    ("name", "arguments", "cause"),
    [
        ("copy", {"letters": 1, "alphabet": "ab", "style": "loud"}, "copy: there is no style 'loud'"),
        ("copy", {"alphabet": "aa"}, "copy: alphabet must hold two or more letters"),
        ("arithmetic", {"operations": "divide"}, "arithmetic: there is no operation 'divide'"),
        ("arithmetic", {"digits": 0}, "arithmetic: digits must be a whole number of at least 1, not 0"),
    ],
)
def test_arguments_that_make_no_sense(name: str, arguments: dict[str, Any], cause: str) -> None:
    with pytest.raises(UsageError, match=cause.replace("(", r"\(")):
        make_task(name, arguments)


def test_too_few_problems_is_said() -> None:
    task = make_task("copy", {"letters": 1, "alphabet": "ab"})
    with pytest.raises(UsageError, match="so few different problems"):
        [list(task.problems(split)) for split in ("train", "eval")]
